"""A run that is small enough to be worked out by hand."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from workbench.config import SLO
from workbench.engine_stamps import join_engine_stamps
from workbench.trace import TABLES, Trace, table_of

_MIB = 1 << 20


@dataclass(frozen=True)
class Made:
    """What rights are computed from."""

    trace: Trace
    slo: SLO = field(default_factory=lambda: SLO(gap_ms=200))


def made(**rows):
    tables = {name: table_of(name, rows.get(name, [])) for name in TABLES}
    tables["tokens"] = join_engine_stamps(tables["tokens"], tables["batch"], tables["steps"])
    return Made(Trace(tables, {"label": "live CPU", "status": "complete", "engine": {"config": {"model": "made"}}}))


@pytest.fixture
def run():
    """A chat, and a prompt of 1,200 tokens in steps of 500, 500 and 200 that hold the chat up from 1.2 to 3.2 s.

    A step needs 10 KiB of activation a token; the KV pool is 20 % full, 90 % in the last step of the prompt.
    """
    steps = [  # begin, end, prefill, decode, KV use
        (0.9, 1.0, 10, 0, 0.2),
        (1.0, 1.1, 0, 1, 0.2),
        (1.1, 1.2, 0, 1, 0.2),
        (1.2, 2.0, 500, 0, 0.2),
        (2.0, 2.8, 500, 0, 0.2),
        (2.8, 3.2, 200, 1, 0.9),
        (3.2, 3.3, 0, 2, 0.2),
    ]
    chat, doc = {"class": "chat", "status": "ok"}, {"class": "long", "status": "ok"}
    return made(
        requests=[
            {"request": "chat-0", "planned_s": 0.8, "sent_s": 0.8, "prompt_tokens": 10, "max_tokens": 5, **chat},
            {"request": "long-0", "planned_s": 1.1, "sent_s": 1.1, "prompt_tokens": 1200, "max_tokens": 2, **doc},
        ],
        tokens=[
            *(
                {"request": "chat-0", "index": i, "n": 1, "client_s": t}
                for i, t in enumerate((1.0, 1.1, 1.2, 3.2, 3.3))
            ),
            *({"request": "long-0", "index": i, "n": 1, "client_s": t} for i, t in enumerate((3.2, 3.3))),
        ],
        batch=[
            {"step": 1, "request": "chat-0", "tokens": 10, "context": 0, "prefill": True, "emitted": 1},
            *(
                {"step": s, "request": "chat-0", "tokens": 1, "context": 8 + s, "prefill": False, "emitted": 1}
                for s in (2, 3, 6, 7)
            ),
            {"step": 4, "request": "long-0", "tokens": 500, "context": 0, "prefill": True, "emitted": 0},
            {"step": 5, "request": "long-0", "tokens": 500, "context": 500, "prefill": True, "emitted": 0},
            {"step": 6, "request": "long-0", "tokens": 200, "context": 1000, "prefill": True, "emitted": 1},
            {"step": 7, "request": "long-0", "tokens": 1, "context": 1200, "prefill": False, "emitted": 1},
        ],
        steps=[
            {
                "step": number,
                "scheduled_s": begin,
                "start_s": begin,
                "end_s": end,
                "prefill_tokens": prefill,
                "decode_tokens": decode,
                "kv_use": kv,
                "preempted": [],
                "activation_bytes": 10240 * (prefill + decode),
            }
            for number, (begin, end, prefill, decode, kv) in enumerate(steps, 1)
        ],
    )


@pytest.fixture
def sized():
    """Steps of 100, 200, 400 and 800 tokens, with 10 KiB of activation a token."""
    sizes = (100, 200, 400, 800)
    steps = [
        {"step": n, "prefill_tokens": size, "decode_tokens": 0, "activation_bytes": 10240 * size}
        for n, size in enumerate(sizes)
    ]
    return made(steps=steps)
