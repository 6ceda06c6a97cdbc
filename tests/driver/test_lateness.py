"""The client's loop notes when it ran late."""

from __future__ import annotations

import itertools

import pytest

from workbench.driver.lateness import LATE_S, PERIOD_S, Lateness


class Loop:
    """An event loop whose clock the test moves."""

    def __init__(self):
        self.now, self.due, self.look = 100.0, None, None

    def time(self):
        return self.now

    def call_later(self, delay, look):
        self.due, self.look = self.now + delay, look
        return self

    def cancel(self):
        self.look = None

    def fire(self, late_s=0.0):
        self.now = self.due + late_s
        self.look()


@pytest.fixture
def loop():
    return Loop()


def test_only_what_is_late_is_noted_but_for_the_first_reading(loop):
    meter = Lateness(90.0, loop, loop.time)
    loop.fire()
    first = meter.take()
    assert [(row.t_s, row.late_s) for row in first] == [(pytest.approx(10 + PERIOD_S), 0)]
    for _ in range(5):
        loop.fire(LATE_S / 2)
    assert meter.take() == []
    loop.fire(0.25)
    loop.fire()
    loop.fire(LATE_S * 1.01)
    rows = meter.take()
    assert [row.late_s for row in rows] == pytest.approx([0.25, LATE_S * 1.01])
    assert rows[1].t_s - rows[0].t_s == pytest.approx(2 * PERIOD_S + LATE_S * 1.01)
    assert meter.take() == []


def test_two_late_readings_never_count_the_same_time_twice(loop):
    meter = Lateness(90.0, loop, loop.time)
    for _ in range(4):
        loop.fire(0.02)
    rows = meter.take()
    assert all(later.t_s - later.late_s >= row.t_s for row, later in itertools.pairwise(rows))


def test_it_stops(loop):
    meter = Lateness(90.0, loop, loop.time)
    meter.stop()
    assert loop.look is None
    assert meter.take() == []


def test_a_play_says_that_it_measured(driver, start, request_, patience):
    play, sink = start(driver, request_("plain/lateness"))
    assert play.wait(patience)
    assert sink.client
    assert all(row["late_s"] >= 0 for row in sink.client)
    assert sorted(row["t_s"] for row in sink.client) == [row["t_s"] for row in sink.client]
    assert sink.by_name["plain/lateness"]["cached_tokens"] == 2
