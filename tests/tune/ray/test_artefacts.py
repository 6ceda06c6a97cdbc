"""A run goes home as bytes: what is packed comes out as it was, and nothing lands outside its folder."""

from __future__ import annotations

import os

import pytest

from workbench.errors import StoreError
from workbench.proc import started
from workbench.tune.ray.artefacts import pack, unpack
from workbench.tune.ray.scratch import scratch

RUN = {"run.json": b'{"schema": 1, "status": "complete"}', "tokens.parquet": b"PAR1\x00\xff", "steps.parquet": b"PAR1"}


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


def written(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_is_packed_comes_out_as_it_was(tmp_path, home):
    for name, data in RUN.items():
        (tmp_path / name).write_bytes(data)
    unpack(pack(tmp_path), home)
    assert written(home) == RUN
    assert {path.stat().st_mode & 0o777 for path in home.iterdir()} == {0o600}


def test_links_folders_and_hidden_files_stay_behind(tmp_path):
    (tmp_path / "run.json").write_bytes(b"{}")
    (tmp_path / ".run.json.tmp").write_bytes(b"half")
    (tmp_path / "link.json").symlink_to("/etc/hostname")
    assert pack(tmp_path) == {"run.json": b"{}"}


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/b", "..", ".hidden", "", "x\x00y", "a\nb", "n" * 101, 7])
def test_a_name_that_leads_elsewhere_is_refused_and_nothing_is_written(tmp_path, home, name):
    with pytest.raises(StoreError, match="expected a plain name and bytes"):
        unpack({**RUN, name: b"x"}, home)
    assert written(home) == {}
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.parametrize("meta", [None, b"not json", b"\xff", b"[" * 100_000])
def test_without_a_readable_run_json_it_is_no_run(home, meta):
    files = {name: data for name, data in {**RUN, "run.json": meta}.items() if data is not None}
    with pytest.raises(StoreError, match=r"no run\.json"):
        unpack(files, home)
    assert written(home) == {}


def test_what_is_there_is_not_replaced(home):
    (home / "run.json").write_bytes(b"mine")
    with pytest.raises(StoreError, match="File exists"):
        unpack(RUN, home)
    assert (home / "run.json").read_bytes() == b"mine"


def test_a_scratch_folder_goes_and_takes_those_of_the_dead_along(tmp_path):
    dead = tmp_path / "x-4194305-1-abc"  # above the largest pid there can be
    alive = tmp_path / f"x-1-{started(1)}-abc"
    other = tmp_path / "x-notes"
    for folder in (dead, alive, other):
        folder.mkdir()
    with scratch("x-", tmp_path) as folder:
        assert folder.is_dir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert folder.name.startswith(f"x-{os.getpid()}-")
        assert not dead.exists()
        with scratch("x-", tmp_path) as second:
            assert folder.is_dir()
            assert second.is_dir()
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([alive.name, "x-notes"])
