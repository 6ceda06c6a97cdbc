"""One engine for a room: `workbench room` in Chromium, two viewers and a teacher; the feed is a recorded run."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import psutil
import pytest

from workbench.store import RunWriter, open_run

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "data" / "runs" / "chat_and_long-budget-256"
_PACE = 2.0  # as fast again as it was
_TIMES = {"steps": "end_s", "tokens": "client_s", "memory": "t_s"}
pytestmark = pytest.mark.timeout(900)


class Playback(threading.Thread):
    """Writes a recorded run again, row by row in its time, as a teacher's engine would."""

    def __init__(self, root):
        super().__init__(daemon=True)
        self.trace, self.over = open_run(RECORDED), threading.Event()
        folder = root / "20260101-000000-000-room"
        folder.mkdir(parents=True, mode=0o700)
        self.writer = RunWriter(folder, {**self.trace.meta, "status": "running", "compacted": None, "scenario": "room"})
        for name in ("requests", "knobs"):
            self.writer.rows(name, self.trace.tables[name].to_pylist())

    def run(self):
        rows = sorted(
            (
                (row[column], name, row)
                for name, column in _TIMES.items()
                for row in self.trace.tables[name].to_pylist()
            ),
            key=lambda one: one[0],
        )
        parts = {}
        for part in self.trace.tables["batch"].to_pylist():
            parts.setdefault(part["step"], []).append(part)
        begun = time.monotonic()
        for at_s, name, row in rows:
            if self.over.wait(max(0.0, at_s / _PACE - (time.monotonic() - begun))):
                break
            self.writer.rows(name, [{key: value for key, value in row.items() if key != "engine_s"}])
            if name == "steps":
                self.writer.rows("batch", parts.get(row["step"], []))
        self.over.wait()  # a run that goes on until the test has seen it
        self.writer.close("complete")


@pytest.fixture
def room(voila, tmp_path):
    """`workbench room`; gives its address, process and runs."""
    command = [sys.executable, "-m", "workbench.cli", "room", "--runs", str(tmp_path / "runs")]
    address, process = voila(command, WORKBENCH_ROOM_KEY="the-teachers")
    return address, process, tmp_path / "runs"


def test_two_viewers_see_one_engine_and_only_the_teacher_can_drive(room, browser, screenshot):
    address, process, runs = room
    feed = Playback(runs)
    feed.start()
    complaints, pages = [], []
    context = browser.new_context(viewport={"width": 1600, "height": 1000})
    for query in ("", "?teacher=guessed"):
        page = context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda asked: None if "127.0.0.1" in asked.url or asked.url.startswith(("data:", "blob:"))
                else complaints.append(asked.url))  # fmt: skip
        page.goto(address + "/" + query, timeout=120_000)
        pages.append(page)
    for page in pages:
        page.wait_for_selector(".wb-room .wb-board canvas", timeout=120_000)
        page.wait_for_function(
            "() => document.querySelector('.wb-state')?.textContent.includes('budget 256')", timeout=60_000
        )
        page.wait_for_function(
            "() => document.querySelector('.wb-state')?.textContent.includes('playing room')", timeout=60_000
        )
        assert page.locator(".wb-left").count() == 0, "no form"
        assert page.get_by_role("button", name="Start engine").count() == 0
        assert page.get_by_role("button", name="Run load").count() == 0
    pages[0].wait_for_timeout(4000)
    screenshot(pages[0], "viewer")
    children = [" ".join(one.cmdline()) for one in psutil.Process(process.pid).children(recursive=True)]
    assert not [line for line in children if "vllm" in line], "a viewer starts no engine"
    teacher = context.new_page()
    teacher.goto(address + "/?teacher=the-teachers", timeout=120_000)
    teacher.wait_for_selector(".wb-left", timeout=120_000)
    assert teacher.get_by_role("button", name="Start engine").count() == 1
    screenshot(teacher, "teacher")
    feed.over.set()
    feed.join(30)
    pages[1].wait_for_function(
        "() => document.querySelector('.wb-state')?.textContent.startsWith('ended')", timeout=30_000
    )
    assert complaints == []
    context.close()
