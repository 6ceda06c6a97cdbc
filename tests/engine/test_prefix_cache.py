"""Emptying the prefix cache: hand-made records over real sockets."""

import time

import msgspec
import pytest
import zmq

from workbench.config import Knobs
from workbench.engine import prefix_cache
from workbench.engine.probe import wire
from workbench.engine.probe.knob_page import KnobPage
from workbench.errors import EngineError

KNOBS = Knobs(budget=256, max_running=32, policy="qos", prefix_cache=False)


class Scheduler:
    """The probe's end: looks at the page before a step, and records what it did."""

    def __init__(self, folder):
        self.out = zmq.Context.instance().socket(zmq.PUSH)
        self.out.connect(wire.endpoint(folder))
        self.page, self.number, self.failing = KnobPage(folder), 0, None
        self.changes = []

    def step(self):
        change = self.page.latest()
        self.number += 1
        if change is not None:
            self.changes.append(change)
            if self.failing:
                self.send(wire.Fault("prefix cache reset", self.failing))
            self.send(wire.KnobReply(change.revision, 1.0, self.number))
        self.send(wire.Step(self.number, 1.0, 100.0, 7, 1, 0, 0.1, [], [wire.Part("a", 1, 0, True)], end_s=1.1))

    def send(self, record):
        self.out.send(msgspec.msgpack.encode(record))


@pytest.fixture
def scheduler(sockets, collector):
    one = Scheduler(sockets)
    yield one
    one.out.close(0)


def test_each_reset_is_one_more_and_the_knobs_stay(collector, scheduler):
    for _ in range(2):
        prefix_cache.reset(collector, 7, KNOBS, scheduler.step)
    collector.send_knobs(8, KNOBS.replace(budget=128))
    scheduler.step()
    assert [(one.revision, one.cache_resets, one.budget, one.prefix_cache) for one in scheduler.changes] == [
        (7, 1, 256, False),
        (7, 2, 256, False),
        (8, 2, 128, False),  # a change of knobs resets nothing
    ]


def test_a_reset_that_failed_is_told(collector, scheduler):
    scheduler.failing = "3 blocks are in use"
    with pytest.raises(
        EngineError, match="prefix cache: got 'prefix cache reset: 3 blocks are in use', expected an empty"
    ):
        prefix_cache.reset(collector, 7, KNOBS, scheduler.step)
    scheduler.failing = None
    prefix_cache.reset(collector, 7, KNOBS, scheduler.step)


def test_a_failure_is_told_after_a_hundred_faults_too(collector, scheduler):
    for number in range(150):
        scheduler.send(wire.Fault("here", f"{number}"))
    while collector.fault_count < 150:
        time.sleep(0.01)
    prefix_cache.reset(collector, 7, KNOBS, scheduler.step)
    scheduler.failing = "blocks in use"
    with pytest.raises(EngineError, match="expected an empty cache"):
        prefix_cache.reset(collector, 7, KNOBS, scheduler.step)


def test_an_engine_that_does_not_answer_is_told(collector, scheduler, monkeypatch):
    monkeypatch.setattr(prefix_cache, "_ANSWER_S", 0.1)
    with pytest.raises(EngineError, match=r"prefix cache: got no answer in 0\.1 s"):
        prefix_cache.reset(collector, 7, KNOBS, lambda: None)


def test_an_error_of_the_step_is_that_of_the_reset(collector, scheduler):
    def refuse():
        raise EngineError("engine: got status 500")

    with pytest.raises(EngineError, match="status 500"):
        prefix_cache.reset(collector, 7, KNOBS, refuse)
