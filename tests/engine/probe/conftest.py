"""The probe's scheduler on vLLM's own scheduler, without a model, and our end of its sockets."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


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
def model_folder(tmp_path):
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    return tmp_path / "model"
