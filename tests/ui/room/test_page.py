"""Who sees what: the teacher's key gives the panel, everybody else looks."""

import time
from pathlib import Path

import pytest

from workbench.cli import room as verb
from workbench.store import RunWriter
from workbench.ui.panel.app import Panel
from workbench.ui.room import Room, page, room_page

RUNS = Path(__file__).parents[3] / "data" / "runs"


@pytest.fixture
def opened(monkeypatch, tmp_path):
    """Opens a page with a query, and closes it."""
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path))
    monkeypatch.setenv(page.KEY, "k3y")
    found = []

    def open_(query):
        found.append(room_page(query))
        return found[-1]

    yield open_
    for one in found:
        one.close()


@pytest.mark.parametrize("query", ["", "teacher=", "teacher=k3", "teacher=k3y2", "other=k3y"])
def test_without_the_key_one_looks(opened, query):
    assert isinstance(opened(query), Room)


def test_with_the_key_one_drives(opened):
    assert isinstance(opened("token=t&teacher=k3y"), Panel)


def test_without_a_key_on_the_server_nobody_drives(opened, monkeypatch):
    monkeypatch.delenv(page.KEY)
    assert isinstance(opened("teacher="), Room)


def test_the_server_and_its_pages_mean_the_same_key():
    assert page.KEY == verb.KEY


def test_a_room_shows_the_run_and_its_knobs():
    room = Room(RUNS).follow()  # the last by name: thrash-chunked
    try:
        until = time.monotonic() + 60
        while not any(room.board.rows.get(chart) for chart in ("gaps", "steps")) and time.monotonic() < until:
            time.sleep(0.1)
        assert room.board.rows["gaps"]
        assert "ended · " in room._state()
        assert "budget 128" in room._state()
        assert len(room.children) == 2  # a style and the board: nothing to press
    finally:
        room.close()


def test_an_empty_folder_says_so(tmp_path):
    assert Room(tmp_path)._state() == f"nothing was played yet in {tmp_path.name}"


def test_knobs_in_words():
    knobs = {"revision": 7, "budget": 2048, "chunk": 0, "max_running": 32, "policy": "qos"}
    assert page.knob_words(knobs) == "revision 7 · budget 2,048 · chunk off · running cap 32 · policy qos"
    assert page.knob_words({}) == "knobs not known"


def test_a_room_says_why_a_run_failed(tmp_path):
    folder = tmp_path / "20260101-000000-000-a"
    folder.mkdir(mode=0o700)
    writer = RunWriter(folder, {"label": "live CPU", "scenario": "mine", "slo": {"gap_ms": 200, "ttft_ms": 1000}})
    writer.rows("knobs", [{"revision": 3, "sent_s": 0.0, "budget": 64}])
    writer.close("failed", "the engine died in mid-run: out of memory")
    assert Room(tmp_path)._state() == "failed: the engine died in mid-run: out of memory"
