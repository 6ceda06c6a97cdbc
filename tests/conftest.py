"""An engine that is none, for tests of what stands on engines (says so: no vLLM in here)."""

import contextlib
import signal
import threading
import time
from pathlib import Path

import pytest

from workbench.config import Envelope, Knobs
from workbench.errors import EngineDiedError
from workbench.simulate.host import Simulator
from workbench.workload.request import Request

_BROWSER = Path(__file__).parent / "browser"
# Files of a few tests that take long: of several workers none is to begin with one when the others have ended.
_LONG = (
    "claims/test_reference_command.py",
    "models/test_conversion.py",
    "notebooks/test_export.py",
    "notebooks/test_notebooks.py",
    "tune/ray/test_cluster.py",
    "tune/ray/test_trial_child.py",
)

# A shell starts `make test &` with Ctrl-C ignored, and what a test starts and interrupts would inherit that.
with contextlib.suppress(ValueError):  # not the main thread
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path, config):
    """The second part of `make test` imports only files that may have a test of it: all of them take half a minute."""
    if config.option.markexpr != "live or browser" or collection_path.suffix != ".py":
        return None
    text = collection_path.read_text(encoding="utf-8")
    ours = _BROWSER in collection_path.parents or "mark.live" in text or "mark.browser" in text
    return None if ours else True


def pytest_collection_modifyitems(config, items):
    for item in items:
        if _BROWSER in item.path.parents:
            item.add_marker("browser")
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: not str(item.path).endswith(_LONG))


@pytest.fixture(scope="session")
def one_simulator():
    """The real simulator; importing vLLM takes its child seconds, which each engine would pay."""
    made = Simulator()
    end, made.close = made.close, lambda: None
    yield made
    end()


@pytest.fixture(scope="module")
def shared_simulator(one_simulator):
    """Every simulated engine and player takes that one: for tests of what is played, not of the child."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("workbench.simulate.host._START_S", 900.0)  # its one start, on a machine that tests share
        for module in ("simulate.engine", "planning.plays", "tune.play.virtual"):
            patch.setattr(f"workbench.{module}.Simulator", lambda: one_simulator)
        yield one_simulator


class FakePlaying:
    """A play that the test ends by hand."""

    def __init__(self):
        self.zero = time.monotonic()
        self.over = threading.Event()
        self.error = None
        self.added, self.released = [], False

    def add(self, request):
        self.added.append(request)

    @property
    def now_s(self):
        return time.monotonic() - self.zero

    def reach(self, at_s):
        return not self.over.wait(max(0.0, at_s - self.now_s))

    def release(self):
        self.released = True

    def cancel(self):
        self.over.set()

    def wait(self, timeout_s=None):
        ended = self.over.wait(timeout_s)
        if self.error:
            raise self.error
        return ended


class FakeEngine:
    """Takes a workload and says nothing."""

    label = "live CPU"
    state = "ready"
    pid = None
    model = None
    revision = 0
    ready_since = None
    trouble = ""
    exact_prompts = True

    def __init__(self, refuse=None, config=None):
        self.refuse, self.config, self.lines = refuse, config, ()
        self.playing = FakePlaying()
        self.knobs = Knobs(budget=64, max_running=8)
        self.sent = []

    @property
    def keeps_cache(self):
        return bool(self.config and self.config.enable_prefix_caching)

    @property
    def envelope(self):
        return self.config.envelope if self.config else Envelope(max_budget=64, max_running=8, max_chunk=4096)

    def play(self, workload, sink, hold_s=None):
        if self.refuse:
            raise self.refuse
        self.sink, self.hold_s, self.workload = sink, hold_s, workload
        self.playing = FakePlaying()
        return self.playing

    def start(self, progress=None):
        self.state = "ready"

    def stop(self):
        self.playing.over.set()
        self.state = "stopped"

    def set_knobs(self, knobs):
        self.sent.append(knobs)
        self.knobs = knobs
        self.revision += 1
        return self.revision

    def death(self):
        return EngineDiedError("the engine died: no memory left") if self.state == "failed" else None

    def log_tail(self):
        return self.lines

    def describe(self):
        return {"engine_pid": 1}

    def compute_facts(self):
        return {"peak": None, "state": self.state}


class FakeDrops:
    """Makes dropped prompts without a tokenizer."""

    def make(self, tokens, output_tokens):
        return Request(f"dropped-{tokens}", "long", 0, 0.0, (1,) * tokens, output_tokens)


@pytest.fixture
def fake_drops():
    return FakeDrops()


@pytest.fixture
def fake_engine():
    """The class, to be made with or without a refusal."""
    return FakeEngine


@pytest.fixture
def engine():
    return FakeEngine()
