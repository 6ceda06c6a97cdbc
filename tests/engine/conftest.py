"""Fake engines under real guards; nothing here starts vLLM."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest

from workbench.engine.collector import Collector
from workbench.engine.command import ENV_LABEL
from workbench.engine.probe import wire
from workbench.engine.process import EngineProcess
from workbench.proc import labelled

FAKE = [sys.executable, str(Path(__file__).with_name("fake_engine.py"))]
PROMISE_S = 10.0  # "within 10 s nothing is left"


def until(what, timeout_s=PROMISE_S):
    """The first true value of ``what()``, or its last value."""
    deadline = time.monotonic() + timeout_s
    while not (value := what()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return value


class Lab:
    """Starts fake engines, and looks at what is left of them."""

    fake = FAKE
    until = staticmethod(until)

    def __init__(self, tmp_path):
        self.root = tmp_path
        self.started = []

    def order(self, *arguments, argv=None):
        """Arguments of an EngineProcess for a fake engine."""
        label = secrets.token_hex(8)
        folder = self.root / f"wb-{label}"
        folder.mkdir(mode=0o700)
        return {
            "argv": argv or [*FAKE, *arguments],
            "env": {ENV_LABEL: label, "PATH": os.environ["PATH"]},
            "folder": folder,
            "log": self.root / f"{label}.log",
            "label": label,
        }

    def start(self, *arguments, ready=1, argv=None, **more):
        """Start a fake engine and wait until ``ready`` of its processes have said so."""
        process = EngineProcess(**(self.order(*arguments, argv=argv) | more))
        self.started.append(process)
        if ready:
            assert until(lambda: self.text(process).count(" ready ") >= ready), self.text(process)[-500:]
        return process

    def record(self, label):
        return self.root / "state" / "engines" / f"{label}.json"

    @staticmethod
    def text(process):
        with contextlib.suppress(OSError):
            return process.log.read_text()
        return ""

    def left(self, label, folder=None):
        """What there still is of an engine."""
        there = [f"process {pid}" for pid in labelled(ENV_LABEL, label)]
        there += [str(path) for path in (self.record(label), folder or self.root / f"wb-{label}") if path.exists()]
        return there

    def nothing_left(self, label):
        """Whether all of an engine is gone within the promised time."""
        until(lambda: not self.left(label))
        assert self.left(label) == []
        return True

    def close(self):
        for process in self.started:
            process.stop()
            for pid in labelled(ENV_LABEL, process.label):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


@pytest.fixture
def sockets(monkeypatch):
    """A short 0700 folder: a socket's path may not be longer than 107 bytes."""
    folder = Path(tempfile.mkdtemp(prefix="wb-"))
    monkeypatch.setenv(wire.ENV_FOLDER, str(folder))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def collector(sockets):
    collector = Collector(sockets)
    yield collector
    collector.close()


@pytest.fixture
def lab(tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_STATE", str(tmp_path / "state"))
    lab = Lab(tmp_path)
    yield lab
    lab.close()
