"""Faults that only the real vLLM can show, on two workbenches: what kills an engine comes last.

One engine starts while something else goes on: most of a start is one process that imports vLLM.
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from workbench import Workbench
from workbench.engine.command import ENV_LABEL
from workbench.engine.leftovers import find_leftovers, records_folder
from workbench.errors import EngineDiedError, EngineStartError
from workbench.proc import labelled
from workbench.workload.scenario import Scenario

pytestmark = pytest.mark.live

FIELDS = {"max_model_len": 2048, "max_num_batched_tokens": 2048, "kv_cache_mib": 256}
PATIENCE_S = 300.0  # a test that needs it has failed


def scenario(count=2, prompt=16, output=1500):
    arrivals = {"kind": "at_once", "count": count}
    stream = {"class": "chat", "arrivals": arrivals, "prompt_tokens": prompt, "output_tokens": output}
    return Scenario.model_validate({"name": "faults", "streams": [stream]})


def until(condition, what, within_s=PATIENCE_S):
    deadline = time.monotonic() + within_s
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.05)
    return found


class Faulty:
    """A workbench whose engine may be told to start before somebody needs it."""

    def __init__(self, runs, pool):
        self.bench, self._pool, self._start = Workbench("smollm2", runs=runs, **FIELDS), pool, None

    def begin(self):
        if self._start is None and self.bench.engine.state != "ready":  # else this is the second try of a test
            self._start = self._pool.submit(self.bench.start)

    def up(self):
        """The workbench, with an engine that is up."""
        begun, self._start = self._start, None
        return begun.result() if begun else self.bench.start()


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """With state and temporary files of their own; no engine runs yet."""
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="t-", dir="/tmp") as temporary:
        patch.setenv("WORKBENCH_STATE", str(tmp_path_factory.mktemp("state")))
        patch.setenv("TMPDIR", temporary)
        patch.setattr(tempfile, "tempdir", None)
        runs = tmp_path_factory.mktemp("runs")
        with ThreadPoolExecutor(2) as pool:
            both = Faulty(runs, pool), Faulty(runs, pool)
            try:
                yield both
            finally:
                for one in both:
                    one.bench.stop()
        left = [*Path(temporary).glob("wb-*"), *Path(temporary).glob("vllm_dist_*")]
        assert left == []
        patch.setattr(tempfile, "tempdir", None)


@pytest.fixture
def up(two):
    """The first one, with an engine that is up."""
    return two[0].up()


def process_of(bench, name):
    """A process below the API server, by the name that vLLM gives it."""
    below = psutil.Process(bench.engine.pid).children(recursive=True)
    (process,) = [child for child in below if name in child.name()]
    return process


def engine_gone(label):
    until(lambda: not labelled(ENV_LABEL, label), "a process of the engine is left", 20)
    until(lambda: not (records_folder() / f"{label}.json").exists(), "its record is left", 5)
    assert find_leftovers() == []


def label_of(bench):
    return bench.engine._held.process.label


def one_line(error):
    text = str(error)
    assert "\n" not in text
    return text


def books(run, asked):
    """Whether the run is right as far as it goes; its tokens."""
    trace = run.trace
    tokens = trace.tokens
    assert trace.steps["step"].diff().dropna().eq(1).all(), "a step is missing"
    emitted = trace.batch.groupby("request")["emitted"].sum()
    for request in trace.requests.itertuples():
        mine = tokens[tokens["request"] == request.request]
        assert mine["index"].tolist() == [0, *mine["n"].cumsum().tolist()[:-1]][: len(mine)]
        # The record of a step leaves while the next one computes: of an engine that died the last may be missing.
        assert mine["n"].sum() <= emitted.get(request.request, 0) + 1 <= asked + 1
        if request.status == "ok":
            assert mine["n"].sum() == emitted[request.request] == asked
    return tokens


def plays_well(bench):
    run = bench.run(scenario(output=20))
    assert run.wait(PATIENCE_S)
    assert run.trace.requests["status"].tolist() == ["ok", "ok"]
    assert books(run, 20)["n"].sum() == 40
    assert run.trace.steps["running"].iloc[-1] <= 2, "the engine still has requests of the run before"


def test_memory_that_ends_at_the_start(two):
    limited, faulty = [], two[1].bench
    two[0].begin()

    def limit(_elapsed, _what):
        """Let the API server, and with it each process that it starts, have 4 GiB: the pool alone is as large."""
        pid = faulty.engine.pid
        if pid is not None and not limited:
            resource.prlimit(pid, resource.RLIMIT_AS, (4 << 30, 4 << 30))
            assert not psutil.Process(pid).children(), "the limit came too late"
            limited.append(label_of(faulty))

    faulty.configure(kv_cache_mib=4 << 10)  # without it the largest process of the engine has 3 GiB here
    try:
        with pytest.raises(EngineStartError) as caught:
            faulty.start(limit)
    finally:
        faulty.stop()
        faulty.configure(kv_cache_mib=FIELDS["kv_cache_mib"])
    assert limited
    assert "out of host memory" in one_line(caught.value)
    assert "lower kv_cache_mib, max_model_len or max_num_batched_tokens" in str(caught.value)
    assert caught.value.log_tail
    engine_gone(limited[0])
    two[1].begin()


def test_sockets_that_are_deleted(up):
    """The knobs and the records do not mind."""
    run = up.run(scenario())
    until(lambda: run.progress[0] > 20, "no tokens came")
    for folder in (up.engine._held.process.folder, up.engine._held.driver._folder):
        assert Path(folder).parent == Path(tempfile.gettempdir())
        shutil.rmtree(folder)
    revision = up.knobs(budget=100)
    told = run.progress[0]
    until(lambda: run.progress[0] > told + 20, "no tokens came after that")
    up.stop_load()
    books(run, 1500)
    assert run.trace.steps["revision"].iloc[-1] == revision
    assert run.meta["engine"]["probe_faults"] == []
    plays_well(up)


def test_a_thousand_changes_of_knobs_a_second(up):
    run = up.run(scenario())
    until(lambda: run.progress[0] > 20, "no tokens came")
    begun, first, sent = time.monotonic(), up.engine.revision + 1, {}
    for number in range(3000):
        budget = 64 + number % 1000
        sent[up.knobs(budget=budget)] = budget
        time.sleep(max(0.0, begun + (number + 1) / 1000 - time.monotonic()))
    told = run.progress[0]
    until(lambda: run.progress[0] > told + 20, "no tokens came after that")
    up.stop_load()
    books(run, 1500)
    knobs = run.trace.tables["knobs"].to_pandas().set_index("revision")
    assert knobs.loc[first:, "budget"].to_dict() == sent
    applied = knobs["applied_s"].dropna()
    used = run.trace.steps["revision"]
    assert set(used) <= set(applied.index)
    assert used.is_monotonic_increasing
    assert used.iloc[-1] == first + 2999 == up.engine.revision
    assert run.meta["engine"]["probe_faults"] == []


def test_a_thousand_requests_cancelled_at_once(up):
    up.knobs(budget=2048)
    run = up.run(scenario(count=1000))
    until(lambda: run.progress[0] > 200, "no tokens came")
    up.stop_load()
    requests = run.trace.requests
    assert (run.meta["status"], len(requests)) == ("cancelled", 1000)
    assert set(requests["status"]) == {"cancelled"}
    books(run, 1500)
    plays_well(up)


def test_an_engine_core_that_is_stopped(up):
    label, stopped = label_of(up), process_of(up, "EngineCore").pid
    run = up.run(scenario())
    until(lambda: run.progress[0] > 20, "no tokens came")
    os.kill(stopped, signal.SIGSTOP)
    with pytest.raises(EngineDiedError) as caught:
        run.wait(PATIENCE_S)
    said = one_line(caught.value)
    assert said.startswith("the engine hangs: got no step and no token for ")
    assert f"process {stopped} of it is stopped (SIGSTOP)" in said
    assert "2 requests that wait" in said
    engine_gone(label)
    assert (up.engine.state, run.meta["status"]) == ("failed", "failed")
    assert len(books(run, 1500)) > 15


def test_memory_that_ends_in_mid_run(two):
    """After a failed start the next one is well; then it is short of memory, once a long prompt comes."""
    up = two[1].up()
    plays_well(up)
    label, victim = label_of(up), process_of(up, "Worker")  # which computes
    run = up.run(scenario())
    until(lambda: run.progress[0] > 20, "no tokens came")
    most = victim.memory_info().vms + (4 << 20)
    resource.prlimit(victim.pid, resource.RLIMIT_AS, (most, most))
    up.drop_long(1800)  # in one step: some 30 MiB
    with pytest.raises(EngineDiedError) as caught:
        run.wait(PATIENCE_S)
    said = one_line(caught.value)
    assert "died in mid-run: out of host memory" in said
    assert "lower kv_cache_mib, max_model_len or max_num_batched_tokens" in said
    assert (up.engine.state, run.meta["status"], run.meta["reason"]) == ("failed", "failed", said)
    engine_gone(label)
    assert len(books(run, 1500)) > 15
    assert run.trace.requests.set_index("request")["status"].isin(["error", "cancelled", "unfinished"]).all()
