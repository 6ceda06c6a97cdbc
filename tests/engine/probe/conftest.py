"""The probe's scheduler on vLLM's own scheduler, without a model, and our end of its sockets."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from workbench.engine.collector import Collector
from workbench.engine.probe import wire


class ListSink:
    """Keeps the rows it is given."""

    def __init__(self):
        self.tables = {}

    def rows(self, table, rows):
        self.tables.setdefault(table, []).extend(rows)

    def until(self, table, count, timeout_s=10.0):
        """The rows of a table, once there are ``count`` of them."""
        deadline = time.monotonic() + timeout_s
        while len(self.tables.get(table, [])) < count and time.monotonic() < deadline:
            time.sleep(0.01)
        return self.tables.get(table, [])


@pytest.fixture
def sink():
    return ListSink()


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
def model_folder(tmp_path):
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    return tmp_path / "model"
