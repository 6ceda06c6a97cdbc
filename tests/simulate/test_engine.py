"""The simulated engine does what a live one does, in virtual time."""

import os
import subprocess
import sys
import threading
import time
from collections import defaultdict

import pytest

from workbench.errors import ConfigError, EngineDiedError, EngineError, EngineStartError, EnvelopeError, InputError
from workbench.frozen import parse
from workbench.proc import is_alive
from workbench.simulate.engine import SimulatedEngine
from workbench.simulate.host import Simulator
from workbench.simulated_config import SimulatedConfig
from workbench.workload.request import Request, Workload


class Sink:
    def __init__(self):
        self.tables = defaultdict(list)

    def rows(self, table, rows):
        self.tables[table] += rows


def request(name, at=0.0, prompt=64, output=8, cls="chat", priority=1):
    return Request(name, cls, priority, at, tuple(range(prompt)), output)


def long_play(n=400):
    return Workload(tuple(request(f"r{i}", float(i), 500, 300) for i in range(n)))


@pytest.fixture(scope="module")
def engine(shared_simulator):
    one = SimulatedEngine(parse(SimulatedConfig, {"gpu": "H100", "count": 8, "enable_prefix_caching": True}))
    told = []
    one.start(lambda seconds, what: told.append((seconds, what)))
    assert told[-1] == (one.startup_s, "ready")
    assert one.state == "ready"
    yield one
    one.stop()
    assert one.state == "stopped"


@pytest.fixture(autouse=True)
def defaults(request):
    yield
    if "engine" in request.fixturenames:
        one = request.getfixturevalue("engine")
        one.set_knobs(one.envelope.defaults)


def test_it_says_what_it_is(engine):
    told = engine.describe()
    assert (told["label"], told["engine_pid"], engine.pid) == ("simulated", None, None)
    assert told["vllm"] == "0.32.0"
    assert told["simulated"]["step_time_label"] == "roofline, uncalibrated"
    assert "--tensor-parallel-size 8" in told["serve_command"]
    facts = engine.compute_facts()
    assert facts["peak"]["flops_per_s"] == pytest.approx(8 * 989.5e12)
    assert facts["missing"] == {}
    assert engine.model.tokenizer_path.is_file()


def test_rows_of_a_play_are_those_of_a_trace(engine):
    sink = Sink()
    play = engine.play(Workload((request("a"), request("b", 100.0))), sink)
    begun = time.monotonic()
    assert play.wait(60)
    assert time.monotonic() - begun < 60, "a hundred virtual seconds do not take as long"
    assert play.done
    assert (play.output_tokens, play.ended, play.failed, play.in_flight) == (16, 2, 0, 0)
    rows = {row["request"]: row for row in sink.tables["requests"]}
    assert rows["b"]["planned_s"] == 100.0
    assert rows["b"]["cached_tokens"] == 48, "three of its four blocks, as the last token is always computed"
    assert all("client_s" not in row and row["engine_s"] > 0 for row in sink.tables["tokens"])
    assert play.facts["steps"] == len(sink.tables["steps"])


def test_knobs_set_while_the_clock_stands_take_hold_at_that_time(engine):
    sink = Sink()
    play = engine.play(Workload(tuple(request(f"r{i}", i / 10, 400, 4) for i in range(60))), sink, hold_s=2.0)
    assert play.reach(2.0)
    before = engine.revision
    assert engine.set_knobs(engine.knobs.replace(budget=256)) == before + 1
    assert play.reach(4.0)
    engine.set_knobs(engine.knobs.replace(policy="qos"))
    play.release()
    assert play.wait(60)
    assert not play.reach(9.0)
    sent = {row["revision"]: row["sent_s"] for row in sink.tables["knobs"] if row.get("sent_s") is not None}
    assert sent[before + 1] == pytest.approx(2.0, abs=0.1)
    assert sent[before + 2] == pytest.approx(4.0, abs=0.1)
    wide = {row["revision"]: row["prefill_tokens"] for row in sink.tables["steps"]}
    assert wide.keys() == {before, before + 1, before + 2}


def test_a_dropped_prompt_joins_at_the_present_virtual_time(engine):
    sink = Sink()
    play = engine.play(long_play(), sink, hold_s=5.0)
    play.reach(5.0)
    play.add(request("dropped", prompt=5000, priority=2))
    with pytest.raises(InputError, match="request: got 'dropped'"):
        play.add(request("dropped"))
    with pytest.raises(EngineError, match="got a second workload"):
        engine.play(Workload((request("x"),)), Sink())
    with pytest.raises(EngineError, match="in mid-run"):
        engine.reset_prefix_cache()
    play.reach(9.0)
    play.cancel()
    assert play.wait(60)
    rows = {row["request"]: row for row in sink.tables["requests"]}
    assert rows["dropped"]["planned_s"] == pytest.approx(5.0, abs=0.1)
    assert rows["dropped"]["status"] == "ok"
    assert rows["r399"]["status"] == "cancelled"
    assert len(rows) == 401
    with pytest.raises(EngineError, match="after the end"):
        play.add(request("late"))
    engine.reset_prefix_cache()


def test_a_sink_that_fails_is_the_plays_error(engine):
    class Full(Sink):
        def rows(self, table, rows):
            raise OSError("disk full")

    play = engine.play(Workload((request("a"),)), Full())
    with pytest.raises(EngineError, match="disk full"):
        play.wait(60)


def test_knobs_outside_the_envelope_are_refused(engine):
    with pytest.raises(EnvelopeError, match="budget: got '9000'"):
        engine.set_knobs(engine.knobs.replace(budget=9000))


def test_before_its_start_it_refuses_and_after_a_bad_one_it_has_failed():
    one = SimulatedEngine(parse(SimulatedConfig, {"gpu": "H100", "count": 1}))
    with pytest.raises(EngineError, match="while the engine is new"):
        one.play(Workload((request("a"),)), Sink())
    with pytest.raises(ConfigError, match="enable_prefix_caching"):
        one.reset_prefix_cache()
    with pytest.raises(InputError, match="memory of Llama"):
        one.start()
    assert one.state == "failed"


def test_a_start_can_be_stopped_and_a_child_that_dies_ends_the_play(monkeypatch):
    monkeypatch.setattr("workbench.simulate.engine.Simulator", Simulator)  # a child of its own
    one = SimulatedEngine(parse(SimulatedConfig, {"gpu": "H100", "count": 8}))
    timer = threading.Timer(0.5, one.stop)
    timer.start()
    with pytest.raises(EngineStartError):
        one.start()
    timer.join()
    assert one._simulator.pid is None
    one.start()
    pid = one._simulator.pid
    assert is_alive(pid)
    try:
        sink = Sink()
        play = one.play(long_play(3000), sink)
        threading.Timer(0.3, one.stop).start()
        with pytest.raises(EngineDiedError):
            play.wait(60)
        assert one.state in ("stopping", "stopped")
        assert {row["request"] for row in sink.tables["requests"]} == {f"r{i}" for i in range(3000)}
    finally:
        one.stop()
    assert not is_alive(pid)


def test_a_kernel_that_is_killed_leaves_no_folder(tmp_path):
    code = (
        "import os, signal\nfrom workbench.simulate.engine import SimulatedEngine\n"
        "from workbench.simulated_config import SimulatedConfig\n"
        "engine = SimulatedEngine(SimulatedConfig(count=8))\nengine.start()\n"
        "print(engine.model.tokenizer_path, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"TMPDIR": str(tmp_path)}, capture_output=True, text=True
    )
    assert said.stdout.startswith(str(tmp_path)), said.stderr
    until = time.monotonic() + 60
    while list(tmp_path.glob("wb-*")) and time.monotonic() < until:
        time.sleep(0.1)
    assert not list(tmp_path.glob("wb-*"))


def test_at_a_pace_the_clock_follows_the_wall_and_knobs_are_turned_in_mid_run(shared_simulator):
    config = parse(SimulatedConfig, {"gpu": "H100", "count": 8, "pace": 4, "max_num_seqs": 8})
    one, sink = SimulatedEngine(config), Sink()
    one.start()
    try:
        play = one.play(Workload((request("a"), request("b", 12.0))), sink, hold_s=2.0)
        begun = time.monotonic()
        assert play.reach(2.0)
        assert time.monotonic() - begun >= 0.4, "two virtual seconds are half a second"
        assert 2.0 <= play.now_s < 2.1
        time.sleep(1.0)
        assert play.now_s < 2.1, "it stands there"
        revision = one.set_knobs(one.knobs.replace(budget=16))
        play.release()
        assert play.wait(60)
        assert time.monotonic() - begun >= 2.9
        turned = next(row for row in sink.tables["knobs"] if row["revision"] == revision)
        assert 2.0 <= turned["sent_s"] < 2.1
        assert {row["status"] for row in sink.tables["requests"]} == {"ok"}
        cancelled = one.play(Workload((request("a"), request("b", 4000.0))), Sink())
        cancelled.cancel()
        assert cancelled.wait(30)
    finally:
        one.stop()
