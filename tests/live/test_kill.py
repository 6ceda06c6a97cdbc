"""kill -9 of each process that matters, in mid-run: nothing of ours stays, and what was measured opens."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from workbench import Workbench
from workbench.engine.command import ENV_LABEL
from workbench.engine.leftovers import find_leftovers, records_folder
from workbench.errors import EngineDiedError
from workbench.proc import labelled, shared_memory
from workbench.store import list_runs

pytestmark = pytest.mark.live

GONE_WITHIN_S = 10.0
SCENARIO = """
name: kill-me
seed: 1
engine: {max_model_len: 2048, max_num_batched_tokens: 2048, kv_cache_mib: 128}
streams:
  - class: chat
    arrivals: {kind: at_once, count: 2}
    prompt_tokens: 16
    output_tokens: 1500
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A state folder of its own: records of other engines are not this test's business."""
    monkeypatch.setenv("WORKBENCH_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("TMPDIR", "/tmp")
    scenario = tmp_path / "kill-me.yaml"
    scenario.write_text(SCENARIO)
    return tmp_path


def engine_record():
    (record,) = records_folder().glob("*.json")
    return json.loads(record.read_text())


def until(condition, timeout_s, what):
    deadline = time.monotonic() + timeout_s
    while not (found := condition()):
        assert time.monotonic() < deadline, what
        time.sleep(0.1)
    return found


def assert_gone(record, killed_at):
    """No process with the engine's mark, no folder of sockets, no record, and no shared memory of it."""
    left = lambda: labelled(ENV_LABEL, record["label"])  # noqa: E731
    until(lambda: not left(), killed_at + GONE_WITHIN_S - time.monotonic(), f"still running: {left()}")
    until(lambda: not Path(record["folder"]).exists(), 5, "the sockets' folder is still there")
    until(lambda: not list(records_folder().glob("*.json")), 5, "the pid record is still there")
    assert find_leftovers() == []


def cli(place, *args):
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "workbench.cli",
            "run",
            str(place / "kill-me.yaml"),
            "--runs",
            str(place / "runs"),
            *args,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"WORKBENCH_STATE": str(place / "state")},
        # A test run in the background of a shell ignores Ctrl-C, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def tokens_on_disk(place):
    return sum(path.stat().st_size for path in (place / "runs").glob("*/tokens.arrows"))


@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGINT], ids=["kill -9", "Ctrl-C"])
def test_the_command_line_is_ended_in_mid_run(place, signum):
    process = cli(place)
    try:
        until(lambda: tokens_on_disk(place) > 8000, 300, "no tokens were recorded")
        record = engine_record()
        children = psutil.Process(process.pid).children(recursive=True)
        segments = set().union(*(shared_memory(pid) for pid in labelled(ENV_LABEL, record["label"])))
        assert segments, "the engine shares memory between its processes"
        process.send_signal(signum)
        killed_at = time.monotonic()
        out, err = process.communicate(timeout=30)
        assert_gone(record, killed_at)
        until(lambda: not any(c.is_running() and c.status() != "zombie" for c in children), 5, "a child is left")
        assert not [segment for segment in segments if Path(segment).exists()]
    finally:
        process.kill()
    if signum == signal.SIGINT:
        assert process.returncode == 1
        assert "Traceback" not in out + err
        assert "interrupted" in err.strip().splitlines()[-1]
    (run,) = list_runs(place / "runs").itertuples()
    trace = Workbench.open(place / "runs" / run.id).trace
    assert len(trace.tokens) > 20
    assert len(trace.steps) > 20
    assert set(trace.tokens["request"]) == {"chat-0", "chat-1"}
    assert set(trace.requests["class"]) == {"chat"}, "what is known of a request is kept from when it was sent"
    assert trace.meta["status"] == ("cancelled" if signum == signal.SIGINT else "interrupted")


# The worker holds the most memory: it is the one that the kernel kills where memory ends.
@pytest.mark.parametrize("victim", ["API server", "EngineCore", "Worker"])
def test_a_process_of_the_engine_is_killed_in_mid_run(place, victim):
    fields = {"max_model_len": 2048, "max_num_batched_tokens": 2048, "kv_cache_mib": 128}
    with Workbench("smollm2", runs=place / "runs", **fields) as bench:
        bench.start()
        record = engine_record()
        run = bench.run(place / "kill-me.yaml")
        until(lambda: run.progress[0] > 60, 60, "no tokens came")
        api_server = psutil.Process(bench.engine.pid)
        process = api_server
        if victim != "API server":
            (process,) = [c for c in api_server.children(recursive=True) if victim in c.name()]
        process.kill()
        killed_at = time.monotonic()
        with pytest.raises(EngineDiedError, match=r"died in mid-run: .*kept"):
            run.wait(30)
        assert_gone(record, killed_at)
        assert bench.engine.state == "failed"
    assert run.trace.meta["status"] == "failed"
    assert len(run.trace.tokens) > 40
    assert run.trace.requests["status"].isin(["error", "cancelled", "unfinished"]).all()
