"""Starting and stopping, without vLLM: the part before it is launched stands still as long as a test wants."""

import threading

import pytest

from workbench.config import EngineConfig
from workbench.engine import live, prepared
from workbench.engine.decode_floor import DecodeFloor
from workbench.engine.live import LiveEngine
from workbench.engine.probe import wire
from workbench.engine.vitals import Vitals
from workbench.errors import ConfigError, EngineError, EngineStartError, EnvelopeError
from workbench.workload.request import Workload


class Fetch:
    """A model that is being fetched, and says so again and again."""

    def __init__(self):
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self, _model, progress):
        self.begun.set()
        while not self.go_on.wait(0.01):
            progress("fetching")
        raise AssertionError("nobody stopped it")


@pytest.fixture
def fetch(monkeypatch):
    fetch = Fetch()
    monkeypatch.setattr(prepared, "resolve_model", fetch)
    yield fetch
    fetch.go_on.set()


def test_a_stop_ends_a_start_that_has_not_come_to_vllm_yet(fetch):
    engine, errors = LiveEngine(), []

    def start():
        try:
            engine.start()
        except EngineStartError as error:
            errors.append(str(error))

    starting = threading.Thread(target=start)
    starting.start()
    assert fetch.begun.wait(10)
    with pytest.raises(EngineError, match="while starting"):
        engine.start()
    engine.stop()
    starting.join(10)
    assert not starting.is_alive()
    assert errors == ["the start was stopped"]
    assert engine.state == "stopped"


class Parts:
    """An engine that is none, and its collector, driver and server."""

    is_whole = True

    def __init__(self, floor=None):
        self.sent, self.resets = [], []
        self.collector = self.driver = self.server = self
        self.decode_floor = DecodeFloor()
        for number in range(20 if floor else 0):
            part = wire.Part("a", 1, 9, prefill=False)
            begun = 10.0 * number
            self.decode_floor.see(wire.Step(number, begun, 100.0, 0, 1, 0, 0.1, [], [part], end_s=begun + floor / 1000))

    def send_knobs(self, revision, knobs):
        self.sent.append((revision, knobs.policy, knobs.target_gap_ms))

    def make_one_step(self):
        pass


class Playing:
    done = False


@pytest.fixture
def ready(monkeypatch):
    """An engine that is ready, on parts that are none."""

    def make(config=None, **more):
        engine, parts = LiveEngine(config), Parts(**more)
        engine._state, engine._held, engine._vitals = "ready", parts, Vitals(parts, engine._stopping)
        monkeypatch.setattr(live.prefix_cache, "reset", lambda *what: parts.resets.append(what))
        return engine, parts

    return make


def test_a_target_below_the_measured_floor_is_refused_with_the_floor(ready):
    engine, parts = ready(floor=40.0)
    knobs = engine.knobs.replace(policy="target_gap", target_gap_ms=39.9)
    with pytest.raises(
        EnvelopeError, match=r"target_gap_ms: got '39.9', expected at least 40.0, the measured decode fl"
    ):
        engine.set_knobs(knobs)
    assert (parts.sent, engine.revision) == ([], 0), "nothing of it went out"
    assert engine.set_knobs(knobs.replace(target_gap_ms=40.1)) == 1
    assert engine.set_knobs(knobs.replace(policy="chunked")) == 2, "under another policy the target is not looked at"
    assert parts.sent == [(1, "target_gap", 40.1), (2, "chunked", 39.9)]


def test_before_the_floor_is_known_any_target_is_taken(ready):
    engine, parts = ready()
    engine.set_knobs(engine.knobs.replace(policy="target_gap", target_gap_ms=0.1))
    assert parts.sent == [(1, "target_gap", 0.1)]


def test_a_prefix_cache_is_reset_while_nothing_is_played(ready):
    engine, parts = ready(EngineConfig(enable_prefix_caching=True))
    playing = Playing()
    engine._vitals.follow(playing)
    with pytest.raises(EngineError, match=r"prefix cache: got a reset in mid-run.*wait for the run or stop it"):
        engine.reset_prefix_cache()
    assert parts.resets == []
    playing.done = True
    engine.reset_prefix_cache()
    assert parts.resets == [(parts, 0, engine.knobs, parts.make_one_step)]


def test_without_a_prefix_cache_there_is_none_to_reset(ready):
    engine, parts = ready()
    with pytest.raises(ConfigError, match=r"enable_prefix_caching: got 'False'.*start the engine again"):
        engine.reset_prefix_cache()
    assert parts.resets == []


@pytest.mark.parametrize(
    "ask",
    [
        lambda engine: engine.set_knobs(engine.knobs),
        lambda engine: engine.reset_prefix_cache(),
        lambda engine: engine.play(Workload(()), None),
    ],
)
def test_what_needs_an_engine_says_so_without_one(ask):
    with pytest.raises(EngineError, match="while the engine is new, expected ready; start it first"):
        ask(LiveEngine(EngineConfig(enable_prefix_caching=True)))
