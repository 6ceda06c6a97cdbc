"""What is made once: read again, made again when it is damaged, and never in the way."""

from __future__ import annotations

import pytest

from workbench.ui.live.kept import kept


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    return tmp_path / "pages"


def test_it_is_made_once_for_what_it_depends_on(folder):
    made = []
    make = lambda: made.append(1) or "über\nall"  # noqa: E731
    assert [kept("a", make), kept("a", make), kept("b", make)] == ["über\nall"] * 3
    assert made == [1, 1]
    assert len(list(folder.iterdir())) == 2


def test_a_damaged_one_is_made_again(folder):
    kept("a", lambda: "whole")
    (file,) = folder.iterdir()
    for damage in (b"who", b"", b"\xff\xff", b"other\n" + b"0" * 64):
        file.write_bytes(damage)
        assert kept("a", lambda: "again") == "again"


def test_without_a_place_it_is_made_each_time(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path / "file"))
    assert [kept("a", lambda: "made") for _ in range(2)] == ["made", "made"]


def test_old_ones_go(folder):
    import os

    kept("a", lambda: "old")
    (file,) = folder.iterdir()
    os.utime(file, (0, 0))
    kept("b", lambda: "new")
    assert len(list(folder.iterdir())) == 1
