from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import threading
import urllib.request
from pathlib import Path

import pytest

from workbench.driver.host import DriverProcess
from workbench.workload.request import Request, Workload

PATIENCE_S = 60.0  # a test that needs it has failed


class Server:
    """The stub server in its own process."""

    def __init__(self):
        script = Path(__file__).with_name("stub_server.py")
        self.process = subprocess.Popen([sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())

    def told(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/told", timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def stop(self):
        self.process.kill()
        self.process.wait()


class Recorder:
    """A sink that keeps rows."""

    def __init__(self):
        self.lock = threading.Lock()
        self.tokens, self.requests, self.client = [], [], []
        self.first_token = threading.Event()

    def rows(self, table, rows):
        with self.lock:
            getattr(self, table).extend(rows)
        if table == "tokens":
            self.first_token.set()

    @property
    def by_name(self):
        assert len({row["request"] for row in self.requests}) == len(self.requests), "a request was reported twice"
        return {row["request"]: row for row in self.requests}

    def tokens_of(self, request):
        return [row for row in self.tokens if row["request"] == request]


def request(name, arrival_s=0.0, tokens=4, class_name="chat", prompt=(5, 6, 7, 8)):
    return Request(name, class_name, 0, arrival_s, prompt, tokens)


def start(driver, *requests, sink=None, concurrency=None, died=lambda: None, hold_s=None, look=None):
    sink = sink or Recorder()
    workload = Workload(requests, concurrency or {})
    return driver.play(workload, sink, lambda zero: contextlib.nullcontext(), died, hold_s, look=look), sink


@pytest.fixture(scope="session")
def server():
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def own_server():
    """A server that the test may end."""
    server = Server()
    yield server
    server.stop()


@pytest.fixture
def drive():
    """Starts drivers and closes them."""
    drivers = []

    def _drive(port):
        drivers.append(DriverProcess(port, "secret-key", "stub"))
        return drivers[-1]

    yield _drive
    for driver in drivers:
        driver.close()


@pytest.fixture(scope="module")
def driver(server):
    """One child for all tests of a module: plays leave nothing behind in it."""
    driver = DriverProcess(server.port, "secret-key", "stub")
    yield driver
    driver.close()


@pytest.fixture(name="request_")
def _request():
    return request


@pytest.fixture(name="start")
def _start():
    return start


@pytest.fixture
def patience():
    return PATIENCE_S


@pytest.fixture
def recorder():
    return Recorder
