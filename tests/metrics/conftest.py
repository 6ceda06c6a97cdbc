from __future__ import annotations

import pytest

from workbench.engine_stamps import join_engine_stamps
from workbench.trace import TABLES, Trace, table_of


@pytest.fixture
def trace():
    """Build a trace from rows; tokens are stamped with the steps that made them."""

    def build(**rows):
        tables = {name: table_of(name, rows.get(name, [])) for name in TABLES}
        tables["tokens"] = join_engine_stamps(tables["tokens"], tables["batch"], tables["steps"])
        return Trace(tables)

    return build


def stream(request, *times, index=0):
    """Tokens of one stream that arrive one by one."""
    return [{"request": request, "index": index + i, "n": 1, "client_s": t} for i, t in enumerate(times)]


def decodes(request, *steps):
    """Batch rows of a request that makes one token in each of the steps."""
    return [{"step": s, "request": request, "tokens": 1, "prefill": False, "emitted": 1} for s in steps]


def prefill(request, step, tokens, emitted=0):
    """A batch row of a request whose prompt is computed."""
    return {"step": step, "request": request, "tokens": tokens, "prefill": True, "emitted": emitted}


@pytest.fixture
def build():
    """The row builders, for tests that read better with them."""
    return stream, decodes, prefill


@pytest.fixture
def chat_and_long(trace):
    """Two chats decode while a document of 1,500 tokens arrives in chunks of 1,000 and 500.

    Steps 1 to 4 take 10 ms, 5 takes 500 ms and 6 takes 250 ms (with the document), 7 and 8 take 10 ms. Every
    token reaches the client 2 ms after its step; chat-1 fetches those of steps 7 and 8 together.
    """
    ends = {1: 1.01, 2: 1.02, 3: 1.03, 4: 1.04, 5: 1.54, 6: 1.79, 7: 1.80, 8: 1.81}
    starts = {s: ends.get(s - 1, 1.0) for s in ends}
    batch = [
        prefill("chat-0", 1, 20, emitted=1),
        prefill("chat-1", 2, 30, emitted=1),
        *decodes("chat-0", *range(2, 9)),
        *decodes("chat-1", *range(3, 9)),
        prefill("doc", 5, 1000),
        prefill("doc", 6, 500, emitted=1),
        *decodes("doc", 7),
    ]
    tokens = [
        *stream("chat-0", *(ends[s] + 0.002 for s in range(1, 9))),
        *stream("chat-1", *(ends[s] + 0.002 for s in range(2, 7))),
        {"request": "chat-1", "index": 5, "n": 2, "client_s": ends[8] + 0.002},
        *stream("doc", ends[6] + 0.002, ends[7] + 0.002),
    ]
    common = {"class": "chat", "status": "ok"}
    requests = [
        {"request": "chat-0", "planned_s": 0.9, "sent_s": 1.0, "done_s": 1.82, "prompt_tokens": 20, **common},
        {"request": "chat-1", "planned_s": 1.0, "sent_s": 1.0, "done_s": 1.82, "prompt_tokens": 30, **common},
        {
            "request": "doc",
            "class": "long",
            "planned_s": 1.0,
            "sent_s": 1.03,
            "done_s": 1.81,
            "prompt_tokens": 1500,
            "status": "ok",
        },
    ]
    size = {s: [0, 0] for s in ends}
    for row in batch:
        size[row["step"]][0 if row["prefill"] else 1] += row["tokens"]
    steps = [
        {
            "step": s,
            "start_s": starts[s],
            "end_s": ends[s],
            "prefill_tokens": size[s][0],
            "decode_tokens": size[s][1],
            "preempted": [],
            "activation_bytes": 1000 * sum(size[s]),
        }
        for s in ends
    ]
    memory = [
        {"t_s": 1.0, "source": "host", "bytes": 500},
        {"t_s": 1.5, "source": "host", "bytes": 900},
        {"t_s": 1.5, "source": "gpu0", "bytes": None},
    ]
    return trace(requests=requests, tokens=tokens, batch=batch, steps=steps, memory=memory)
