"""The simulator in a process of its own: the same bytes everywhere, told how far it is, ended with its owner."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from jobs import TENTH, ask, job, knobs

from workbench.errors import EngineDiedError, EngineError
from workbench.proc import is_alive
from workbench.simulate import host
from workbench.simulate.host import Simulator
from workbench.simulate.job import Cancel, Ended, Held, Swap, Until
from workbench.simulate.outcome import play_job

POLICIES = ("chunked", "monolithic", "decode_first", "priority", "qos", "target_gap")


@pytest.fixture(scope="module")
def simulator(one_simulator):
    """The one that serves all tests in which it is only played on."""
    one_simulator.start()
    return one_simulator


def scenario(seed):
    """A random job: requests, pool, policy, swap, prefix cache, scheduling, closed loop, a knob change."""
    rng = np.random.default_rng(seed)

    def number(low, high):
        return int(rng.integers(low, high + 1))

    ahead = bool(number(0, 1))
    requests = [
        ask(
            f"r{i}",
            n := number(1, 200),
            number(1, 40),
            round(float(rng.uniform(0, 2)), 4),
            number(0, 2),
            cls=("open", "closed")[number(0, 1)],
            tokens=np.concatenate([np.zeros(n // 2), rng.integers(1, 99, n - n // 2)]).astype("<i4").tobytes(),
        )
        for i in range(number(5, 30))
    ]
    return job(
        requests,
        step_time=TENTH | {"prefill_token_s": 0.0007, "decode_context_s": 1e-5},
        blocks=number(20, 60),
        max_model_len=300,
        prefix_cache=bool(number(0, 1)),
        ahead=ahead,
        depth=2 if ahead else 1,
        concurrency={"closed": 3},
        swap=Swap(20, 0.002, 0.001) if number(0, 1) else None,
        knobs=knobs(policy=POLICIES[number(0, 5)], reserve_full=bool(number(0, 1)), prefill_every=2),
        changes=[(0.7, knobs(budget=512, policy=POLICIES[number(0, 5)], revision=1, max_running=number(2, 8)))],
    )


def test_two_processes_with_other_hash_seeds_say_the_same_byte_for_byte(simulator, monkeypatch):
    monkeypatch.setitem(host.ENVIRONMENT, "PYTHONHASHSEED", "4711")
    other = Simulator()
    other.start()
    try:
        preempted = 0
        for seed in range(10):
            first, second = play_job(simulator, scenario(seed)), play_job(other, scenario(seed))
            assert first.as_bytes() == second.as_bytes()
            assert first.facts == second.facts
            assert first.tables["requests"].num_rows == len(scenario(seed).requests)
            assert set(first.tables["requests"]["status"].to_pylist()) == {"ok"}
            preempted += first.facts["preemptions"]
        assert preempted > 0
    finally:
        other.close()


def test_progress_is_told_and_a_job_can_be_cancelled(simulator):
    told, over = [], threading.Event()
    long = job([ask("a", 20, 900), *(ask(f"r{i}", 20, 900, float(i)) for i in range(200))], number=simulator.number())

    def hear(report):
        told.append(report)
        if not isinstance(report, Ended) and report.tokens > 100:
            simulator.send(Cancel(long.number))
        elif isinstance(report, Ended):
            over.set()

    simulator.submit(long, hear)
    with pytest.raises(EngineError, match="one at a time"):
        simulator.submit(job([ask("b")]), hear)
    assert over.wait(60)
    assert told[-1].error is None
    assert told[-2].ended == 201
    assert told[-2].now_s < 1000, "all of it would be 2,800 s"
    assert play_job(simulator, job([ask("a")])).facts["steps"] == 3, "and the next job is played as ever"


def test_the_clock_is_held_until_it_is_let_go(simulator):
    held, over = [], threading.Event()
    one = job([ask("a", at=1.0), ask("b", at=3.0)], number=simulator.number(), hold_s=2.0)

    def hear(report):
        if isinstance(report, Held):
            held.append(report.at_s)
            simulator.send(Until(one.number, 2.5 if len(held) == 1 else None))
        elif isinstance(report, Ended):
            over.set()

    simulator.submit(one, hear)
    assert over.wait(60)
    assert held == [2.0, 2.5]


def test_a_job_that_cannot_be_played_says_why_and_the_next_one_is_played(simulator):
    with pytest.raises(EngineError, match="step-time model: got 'guess', expected one of"):
        play_job(simulator, job([ask("a")], step_time={"kind": "guess"}))
    with pytest.raises(EngineError, match=r"step_time: got .* expected no coefficient below 0"):
        play_job(simulator, job([ask("a")], step_time={"kind": "linear", "base_s": -1.0}))
    assert play_job(simulator, job([ask("a")])).facts["steps"] == 3


def test_a_child_that_is_killed_is_named_and_can_be_started_again():
    one = Simulator()
    with pytest.raises(EngineDiedError, match="start it"):
        one.submit(job([ask("a")]), lambda _: None)
    one.start()
    try:
        over = []
        one.submit(
            job([ask("a", 20, 1000), *(ask(f"r{i}", 20, 900, float(i)) for i in range(300))], number=1), over.append
        )
        os.kill(one.pid, signal.SIGKILL)
        deadline = time.monotonic() + 10
        while not (over and isinstance(over[-1], Ended)) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert "killed by SIGKILL" in over[-1].error
        assert not one.running
    finally:
        one.close()
    assert one.pid is None


@pytest.mark.parametrize("moment", ["importing", "ready"])
def test_the_child_ends_with_its_owner_whatever_happens_to_it(moment, tmp_path):
    code = (
        "import sys, threading, time; from workbench.simulate.host import Simulator; s = Simulator();"
        "threading.Thread(target=s.start, daemon=True).start();\n"
        "while s.pid is None or (sys.argv[1] == 'ready' and not s.running): time.sleep(0.02)\n"
        "print(s.pid, s._folder, flush=True); time.sleep(600)"
    )
    owner = subprocess.Popen([sys.executable, "-c", code, moment], stdout=subprocess.PIPE, text=True, cwd=tmp_path)
    pid, folder = owner.stdout.readline().split()
    assert is_alive(int(pid))
    owner.kill()
    owner.wait()
    deadline = time.monotonic() + 20
    while is_alive(int(pid)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(int(pid))
    assert not Path(folder).exists()
