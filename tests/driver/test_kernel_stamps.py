"""The kernel's notes in CLOCK_MONOTONIC, also when the wall clock is set meanwhile: on clocks of the test's own."""

import pytest

from workbench.driver import kernel_stamps
from workbench.driver.kernel_stamps import Clock

BOOT_NS = 1_700_000_000 * 10**9  # of the wall clock, when the monotonic one began


class Clocks:
    """Both clocks; ``set_by`` is what somebody has set the wall clock forward by, ``waits`` what a reading costs."""

    def __init__(self):
        self.now_s, self.set_by_s, self.waits = 1000.0, 0.0, []

    def monotonic(self):
        self.now_s += self.waits.pop(0) if self.waits else 0.0
        return self.now_s

    def time_ns(self):
        return BOOT_NS + round((self.now_s + self.set_by_s) * 1e9)


@pytest.fixture
def clocks(monkeypatch):
    clocks = Clocks()
    monkeypatch.setattr(kernel_stamps, "time", clocks)
    return clocks


@pytest.fixture
def clock():
    return Clock()


def read(clocks, clock, after_s):
    """Note a packet now, read it ``after_s`` later; how many seconds before the reading it is said to have come."""
    noted = clocks.time_ns()
    clocks.now_s += after_s
    return clocks.now_s - clock.arrival(noted)


@pytest.mark.parametrize("age_s", [0.0, 0.0001, 0.25, 30.0])
def test_a_packet_came_when_the_kernel_noted_it(clocks, clock, age_s):
    assert read(clocks, clock, age_s) == pytest.approx(age_s, abs=1e-6)


@pytest.mark.parametrize("step_s", [-3600.0, -2.0, -0.02, 0.02, 2.0, 3600.0])
def test_packets_from_before_the_wall_clock_was_set_came_when_they_were_read(clocks, clock, step_s):
    assert read(clocks, clock, 0.001) == pytest.approx(0.001, abs=1e-6)
    first, second = clocks.time_ns(), clocks.time_ns()
    clocks.now_s += 0.004
    clocks.set_by_s += step_s
    clocks.now_s += 0.001
    assert clock.arrival(first) == clocks.now_s, "not by the hour that the clock was set by"
    clocks.now_s += 0.001
    assert clock.arrival(second) == clocks.now_s, "nor one that is read after it"
    assert read(clocks, clock, 0.003) == pytest.approx(0.003, abs=1e-6), "from then on the notes are good again"
    for _ in range(50):
        assert read(clocks, clock, 0.2) == pytest.approx(0.2, abs=1e-6)


def test_a_clock_that_is_corrected_a_little_at_a_time_was_not_set(clocks, clock):
    for _ in range(100):
        assert read(clocks, clock, 0.05) == pytest.approx(0.05, abs=1e-5)
        clocks.set_by_s += 0.05 * 500e-6  # adjtime(3): 500 ppm


def test_after_a_long_silence_the_clocks_may_have_drifted_apart(clocks, clock):
    read(clocks, clock, 0.0)
    clocks.now_s += 3600
    clocks.set_by_s += 0.2
    assert read(clocks, clock, 0.01) == pytest.approx(0.01, abs=1e-6)


def test_a_reader_that_waits_for_a_core_between_two_readings_takes_them_again(clocks, clock):
    read(clocks, clock, 0.0)
    noted = clocks.time_ns()
    clocks.now_s += 0.002
    clocks.waits = [0.0, 0.5, 0.0, 0.0]  # half a second between the first two
    assert clock.arrival(noted) == pytest.approx(clocks.now_s - 0.502, abs=1e-6)
    assert read(clocks, clock, 0.003) == pytest.approx(0.003, abs=1e-6)
