"""Whether an engine lives, on parts that stand for one: no process is in here."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from workbench.engine.vitals import Vitals


class Process:
    """Runs until it is stopped."""

    pid, exit_code = 1, None

    def __init__(self):
        self.stopped = threading.Event()

    def stop(self):
        self.stopped.set()

    def wait(self, timeout_s):
        return self.stopped.is_set()


@pytest.fixture
def held(tmp_path):
    """An engine whose log says that memory ran out."""
    log = tmp_path / "engine.log"
    log.write_text("RuntimeError: DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes.\n")
    return SimpleNamespace(
        is_whole=True,
        process=Process(),
        server=SimpleNamespace(is_lost=lambda: True),
        collector=SimpleNamespace(last_step=3),
        prepared=SimpleNamespace(log=log),
    )


@pytest.fixture
def vitals(held):
    return Vitals(held, threading.Event())


def test_an_engine_whose_processes_run_is_well(vitals):
    assert vitals.good
    assert vitals.death() is None
    assert not vitals.playing


def test_one_whose_processes_have_ended_died_and_its_log_says_of_what(vitals, held):
    held.is_whole = False
    assert not vitals.good
    assert "the engine died in mid-run: out of host memory" in str(vitals.death())
    assert not held.process.stopped.is_set(), "there is nothing left to end"


def test_one_that_was_stopped_did_not_die(held):
    stopping = threading.Event()
    vitals = Vitals(held, stopping)
    stopping.set()
    assert vitals.death() is None, "it has not ended yet"
    held.is_whole = False
    assert str(vitals.death()) == "the engine was stopped"
    vitals.look()
    assert str(vitals.death()) == "the engine was stopped", "nobody asks a server that is being stopped"


def test_one_that_says_it_is_dead_is_ended(vitals, held):
    vitals.look()
    assert not vitals.good
    assert "the engine died in mid-run: out of host memory" in str(vitals.death())
    assert held.process.stopped.wait(10)


def test_one_that_hangs_is_ended_and_stays_so(vitals, held):
    asked = []
    play = SimpleNamespace(done=False, output_tokens=7, in_flight=2)
    vitals.follow(play)
    assert vitals.death() is None, "no pulse was felt yet"
    vitals.begin()
    vitals._pulse = SimpleNamespace(look=lambda *what: asked.append(what) or "got no step, expected some")
    assert vitals.playing
    assert "the engine hangs: got no step, expected some; it was ended" in str(vitals.death())
    assert asked == [((3, 7), 2)]
    assert held.process.stopped.wait(10)
    play.done = True
    assert "the engine hangs" in str(vitals.death())
    assert (asked, vitals.good) == ([((3, 7), 2)], False)
