"""An engine that is none, for tests of what stands on engines (says so: no vLLM in here)."""

import contextlib
import signal
import threading
import time
from pathlib import Path

import pytest

from workbench.config import Envelope, Knobs
from workbench.errors import EngineDiedError
from workbench.workload.request import Request

_BROWSER = Path(__file__).parent / "browser"

# A shell starts `make test &` with Ctrl-C ignored, and what a test starts and interrupts would inherit that.
with contextlib.suppress(ValueError):  # not the main thread
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    for item in items:
        if _BROWSER in item.path.parents:
            item.add_marker("browser")


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
