"""kill -9 of each process that matters, in mid-run: nothing of ours stays, and what was measured opens.

Engines that have to be killed start two at a time, which takes little longer than one. The API server that is killed is
that of the session's engine, after all other tests of it (conftest.py).
"""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from workbench import Workbench
from workbench.engine.command import ENV_LABEL
from workbench.engine.leftovers import find_leftovers
from workbench.errors import EngineDiedError
from workbench.proc import labelled, shared_memory
from workbench.store import list_runs

pytestmark = pytest.mark.live

GONE_WITHIN_S = 10.0
SCENARIO = """
name: kill-me
seed: 1
engine: {max_model_len: 4096, max_num_batched_tokens: 2048, kv_cache_mib: 384}
streams:
  - class: chat
    arrivals: {kind: at_once, count: 2}
    prompt_tokens: 16
    output_tokens: 4000  # so that they still run when the other engine of a pair is gone, on faster machines too
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    scenario = tmp_path_factory.mktemp("kill") / "kill-me.yaml"
    scenario.write_text(SCENARIO)
    return scenario


@pytest.fixture(autouse=True)
def sockets(monkeypatch):
    monkeypatch.setenv("TMPDIR", "/tmp")


def until(condition, timeout_s, what):
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.1)
    return found


def assert_gone(path, record, killed_at):
    """No process with the engine's mark, no folder of sockets, no record, and no shared memory of it."""
    left = lambda: labelled(ENV_LABEL, record["label"])  # noqa: E731
    until(lambda: not left(), killed_at + GONE_WITHIN_S - time.monotonic(), f"still running: {left()}")
    until(lambda: not Path(record["folder"]).exists(), 5, "the sockets' folder is still there")
    until(lambda: not path.exists(), 5, "the pid record is still there")
    assert record["label"] not in [one.label for one in find_leftovers()]


class Line:
    """``workbench run``, with a state folder of its own: records of other engines are not its business."""

    def __init__(self, folder, file):
        self.runs, self.state = folder / "runs", folder / "state"
        self.out, self.err = folder / "out", folder / "err"  # no pipes: nobody reads while the other one is looked at
        with self.out.open("w") as out, self.err.open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "workbench.cli", "run", str(file), "--runs", str(self.runs)],
                stdout=out,
                stderr=err,
                env=os.environ | {"WORKBENCH_STATE": str(self.state), "TMPDIR": "/tmp"},
                # A test run in the background of a shell ignores Ctrl-C, and so would its children.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

    def tokens_on_disk(self):
        return sum(path.stat().st_size for path in self.runs.glob("*/tokens.arrows"))

    def record(self):
        """Where the record of its engine is, and what it says."""
        (path,) = (self.state / "engines").glob("*.json")
        return path, json.loads(path.read_text())


@pytest.fixture(scope="module")
def line_for(file, tmp_path_factory):
    """The command line that a signal will end; both begin together. A second try gets another one."""
    begun = []

    def begin(signum):
        begun.append(Line(tmp_path_factory.mktemp(signum.name), file))
        return begun[-1]

    both = {signum: begin(signum) for signum in (signal.SIGKILL, signal.SIGINT)}
    yield lambda signum: both.pop(signum, None) or begin(signum)
    for line in begun:
        line.process.kill()


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_the_command_line_is_ended_in_mid_run(line_for, signum, monkeypatch):
    line = line_for(signum)
    process = line.process
    monkeypatch.setenv("WORKBENCH_STATE", str(line.state))
    until(lambda: line.tokens_on_disk() > 40_000, 300, "too few tokens were recorded")  # some 600 bytes a batch of them
    path, record = line.record()
    children = psutil.Process(process.pid).children(recursive=True)
    segments = set().union(*(shared_memory(pid) for pid in labelled(ENV_LABEL, record["label"])))
    assert segments, "the engine shares memory between its processes"
    process.send_signal(signum)
    killed_at = time.monotonic()
    process.wait(30)
    assert_gone(path, record, killed_at)
    until(lambda: not any(c.is_running() and c.status() != "zombie" for c in children), 5, "a child is left")
    assert not [segment for segment in segments if Path(segment).exists()]
    if signum == signal.SIGINT:
        assert process.returncode == 1
        err = line.err.read_text()
        assert "Traceback" not in line.out.read_text() + err
        assert "interrupted" in err.strip().splitlines()[-1]
    (run,) = list_runs(line.runs).itertuples()
    trace = Workbench.open(line.runs / run.id).trace
    assert len(trace.tokens) > 20
    assert len(trace.steps) > 20
    assert set(trace.tokens["request"]) == {"chat-0", "chat-1"}
    assert set(trace.requests["class"]) == {"chat"}, "what is known of a request is kept from when it was sent"
    assert trace.meta["status"] == ("cancelled" if signum == signal.SIGINT else "interrupted")


@pytest.fixture(scope="module")
def benches(tmp_path_factory):
    """Of each process that will be killed a workbench whose engine is up; with a state folder of their own."""
    fields = {"max_model_len": 4096, "max_num_batched_tokens": 2048, "kv_cache_mib": 384}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WORKBENCH_STATE", str(tmp_path_factory.mktemp("state")))
        patch.setenv("TMPDIR", "/tmp")
        runs = tmp_path_factory.mktemp("runs")
        with (
            Workbench("smollm2", runs=runs, **fields) as core,
            Workbench("smollm2", runs=runs, **fields) as worker,
            ThreadPoolExecutor(2) as pool,
        ):
            list(pool.map(Workbench.start, (core, worker)))
            yield {"EngineCore": core, "Worker": worker}


# The worker holds the most memory: it is the one that the kernel kills where memory ends.
@pytest.mark.parametrize("victim", ["EngineCore", "Worker", "API server"])
def test_a_process_of_the_engine_is_killed_in_mid_run(victim, file, request, monkeypatch):
    bench = request.getfixturevalue("bench") if victim == "API server" else request.getfixturevalue("benches")[victim]
    bench.start()  # does nothing, but for a second try
    path = bench.engine._held.process._record
    record = json.loads(path.read_text())
    monkeypatch.setenv("WORKBENCH_STATE", str(path.parent.parent))
    run = bench.run(file)
    until(lambda: run.progress[0] > 60, 60, "no tokens came")
    api_server = psutil.Process(bench.engine.pid)
    process = api_server
    if victim != "API server":
        (process,) = [c for c in api_server.children(recursive=True) if victim in c.name()]
    process.kill()
    killed_at = time.monotonic()
    with pytest.raises(EngineDiedError, match=r"died in mid-run: .*kept"):
        run.wait(30)
    assert_gone(path, record, killed_at)
    assert bench.engine.state == "failed"
    assert run.trace.meta["status"] == "failed"
    assert len(run.trace.tokens) > 40
    assert run.trace.requests["status"].isin(["error", "cancelled", "unfinished"]).all()
