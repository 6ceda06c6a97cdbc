"""A file written beside its place is there whole or not at all, and nobody else can read it before."""

import os
import stat

import pytest

from workbench.whole_file import draft_of


@pytest.fixture
def fsyncs(monkeypatch):
    """Counts what is asked to be on the disk."""
    found, real = [], os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (found.append(os.fstat(fd).st_size), real(fd))[1])
    return found


def test_the_new_file_takes_the_place_of_the_old_one(tmp_path, fsyncs):
    path = tmp_path / "one.json"
    path.write_text("old")
    with draft_of(path, mode=0o644) as draft:
        draft.write_text("new")
        assert path.read_text() == "old"
        assert draft.parent == tmp_path
        assert stat.S_IMODE(draft.stat().st_mode) == 0o600
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [path]
    assert fsyncs == []


def test_durable_is_on_the_disk_before_it_is_in_place(tmp_path, fsyncs):
    with draft_of(tmp_path / "one", durable=True) as draft:
        draft.write_text("12345")
    assert fsyncs == [5]
    assert stat.S_IMODE((tmp_path / "one").stat().st_mode) == 0o600


@pytest.mark.parametrize("error", [OSError(28, "full"), ValueError("wrong"), KeyboardInterrupt()])
def test_an_error_leaves_the_old_file_and_no_draft(tmp_path, error):
    path = tmp_path / "one"
    path.write_text("old")

    def write():
        with draft_of(path) as draft:
            draft.write_text("half")
            raise error

    with pytest.raises(type(error)):
        write()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(FileNotFoundError), draft_of(tmp_path / "gone" / "one"):
        pytest.fail("there is no draft")
