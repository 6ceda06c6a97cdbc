from __future__ import annotations

from pathlib import Path

import pytest

from workbench.trace import TABLES, Trace, table_of

DATA = Path(__file__).parents[1] / "data"


def a_request(name, planned, sent, first, last, done, **more):
    row = {"request": name, "class": "chat", "priority": 1, "prompt_tokens": 20, "max_tokens": 3, "planned_s": planned}
    row |= {"sent_s": sent, "first_s": first, "last_s": last, "done_s": done, "output_tokens": 3, "status": "ok"}
    return row | more


@pytest.fixture
def data():
    return DATA


@pytest.fixture
def trace():
    """Two requests that overlap and one after them, two steps, memory, a server's reading, and knobs."""
    rows = {
        "requests": [
            a_request("chat-0", 0.0, 0.001, 0.1, 0.2, 0.2000000013),
            a_request("chat-1", 0.05, 0.051, 0.15, 0.25, 0.25, status="error", error='cut, "here"\nand there'),
            a_request("chat-2", 0.3, None, None, None, None, status="cancelled", error=""),
        ],
        "tokens": [{"request": "chat-0", "index": i, "n": 1, "client_s": 0.1 + 0.05 * i} for i in range(3)],
        "steps": [
            {"step": 1, "scheduled_s": 0.01, "start_s": 0.011, "end_s": 0.1, "prefill_tokens": 20, "decode_tokens": 0,
             "running": 1, "waiting": 1, "kv_use": 0.1, "preempted": [], "activation_bytes": 2**20},
            {"step": 2, "scheduled_s": 0.1, "end_s": 0.15, "prefill_tokens": 20, "decode_tokens": 1, "running": 2,
             "waiting": 0, "kv_use": 1 / 3, "preempted": ["chat-1", 'a "b", c'], "predicted_ms": 12.3},
        ],
        "memory": [
            {"t_s": 0.0, "source": "host engine rss", "bytes": 3 * 2**20},
            {"t_s": 0.5, "source": "nvml used", "bytes": None, "note": "n/a (no GPU)"},
        ],
        "server": [{"t_s": 0.25, "running": 2, "kv_use": 0.5}],
        "knobs": [{"revision": 0, "sent_s": 0.0, "applied_s": 0.0, "budget": 64, "policy": "chunked"},
                  {"revision": 1, "sent_s": 0.1, "reserve_full": False, "watermark": 0.1}],
    }  # fmt: skip
    tables = {name: table_of(name, rows.get(name, [])) for name in TABLES}
    return Trace(tables, {"id": "a-run", "label": "live CPU", "scenario": "made up", "status": "complete"})
