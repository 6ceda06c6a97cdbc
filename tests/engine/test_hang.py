"""Telling a hang from work that takes long, on a clock and processes of the test's own."""

import os
import signal
import subprocess
import sys

import pytest

from workbench.engine import hang
from workbench.engine.hang import IDLE_S, STOPPED_S, Pulse
from workbench.proc import cpu_seconds, state


class Machine:
    """A clock, and what the processes of session 7 do on it."""

    def __init__(self, monkeypatch):
        self.now, self.cpu_s, self.still = 100.0, 0.0, {}
        self.pulse = Pulse(7, lambda: self.now)
        monkeypatch.setattr(hang, "in_session", lambda leader: [7, 8] if leader == 7 else [])
        monkeypatch.setattr(hang, "cpu_seconds", lambda _pids: self.cpu_s)
        monkeypatch.setattr(hang, "state", lambda pid: self.still.get(pid, "S"))

    def go(self, seconds, load=0.0, done=0, owed=1, every=0.1):
        """Let time pass; what was said first, and after how many seconds."""
        for number in range(round(seconds / every)):
            self.now += every
            self.cpu_s += load * every
            if said := self.pulse.look(done, owed):
                return said, (number + 1) * every
        return None, seconds


@pytest.fixture
def machine(monkeypatch):
    return Machine(monkeypatch)


def test_a_stopped_process_is_told_after_some_seconds_with_its_pid(machine):
    machine.still = {8: "T"}
    said, after = machine.go(60, load=1.0, owed=3)  # another process may spin meanwhile
    assert said == "got no step and no token for 5 s with 3 requests that wait, expected some: " + (
        "process 8 of it is stopped (SIGSTOP)"
    )
    assert STOPPED_S <= after <= STOPPED_S + 2


def test_one_that_goes_on_within_seconds_is_not_told(machine):
    machine.still = {8: "T"}
    assert machine.go(STOPPED_S - 1)[0] is None
    machine.still = {}
    assert machine.go(30, load=0.5)[0] is None


def test_one_that_stands_in_a_debugger_is_left_to_it(machine):
    machine.still = {8: "t"}
    assert machine.go(1000)[0] is None


def test_a_step_that_computes_for_an_hour_is_no_hang(machine):
    assert machine.go(3600, load=0.3, every=1.0)[0] is None


def test_who_neither_answers_nor_computes_is_told_after_a_minute(machine):
    said, after = machine.go(200, load=0.002)
    assert "its processes wait and do not compute" in said
    assert "with a request that waits" in said
    assert IDLE_S + STOPPED_S <= after <= IDLE_S + STOPPED_S + 2


def test_a_burst_of_work_begins_the_minute_anew(machine):
    assert machine.go(50)[0] is None
    assert machine.go(1, load=2.0)[0] is None
    assert machine.go(50)[0] is None
    assert machine.go(30)[0]


def test_a_step_or_a_token_is_a_sign_of_life(machine):
    for step in range(10):
        assert machine.go(40, done=step)[0] is None


def test_who_owes_nothing_may_wait(machine):
    assert machine.go(1000, owed=0)[0] is None


def test_while_the_machine_slept_nobody_hung(machine):
    """A laptop's lid, or a virtual machine that was paused: the clock has jumped and nobody computed."""
    assert machine.go(20)[0] is None
    machine.now += 3600
    assert machine.pulse.look(0, 1) is None
    assert machine.go(20)[0] is None


def test_a_worker_that_ends_takes_its_time_with_it(machine):
    machine.cpu_s = 50.0
    assert machine.go(20)[0] is None
    machine.cpu_s = 10.0
    assert machine.go(IDLE_S - 1)[0] is None
    assert machine.go(5)[0]


def test_what_the_kernel_says_of_a_process():
    burn = "import time\nprint(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", burn], stdout=subprocess.PIPE) as one:
        try:
            one.stdout.readline()
            before = cpu_seconds([one.pid])
            while cpu_seconds([one.pid]) <= before:
                pass
            assert state(one.pid) in "RS"
            os.kill(one.pid, signal.SIGSTOP)
            os.waitid(os.P_PID, one.pid, os.WSTOPPED)
            assert state(one.pid) == "T"
            used = cpu_seconds([one.pid])
            assert cpu_seconds([one.pid, one.pid]) == 2 * used
        finally:
            one.kill()
    assert cpu_seconds([one.pid]) == 0.0
    assert state(one.pid) == ""
