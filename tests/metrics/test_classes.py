from __future__ import annotations

import json

import pandas as pd
import pytest

from workbench.config import SLO
from workbench.metrics import by_class, summary

COLUMNS = [
    "requests", "ttft_p50_s", "ttft_p99_s", "gap_p50_ms", "gap_p99_ms", "gap_max_ms", "goodput_per_s",
    "preemptions", "recomputed_tokens", "stalls", "cached_tokens", "compute_floor_s", "bandwidth_floor_s",
]  # fmt: skip


@pytest.fixture
def three(trace, build):
    """A VIP, two normal requests, one of which an offline prompt's chunk sends away, and the offline one."""
    stream, decodes, prefill = build
    steps = [
        {"step": s, "scheduled_s": s, "start_s": s, "end_s": s + 1, "preempted": ["n1"] if s == 3 else []}
        for s in range(1, 6)
    ]
    batch = [
        prefill("off", 1, 100) | {"context": 0},
        prefill("v", 2, 30, emitted=1) | {"context": 0},
        prefill("n1", 2, 40, emitted=1) | {"context": 0},
        prefill("off", 3, 100) | {"context": 100},
        *decodes("v", 3, 4),
        prefill("n1", 4, 41, emitted=1) | {"context": 0},
        prefill("n2", 5, 10, emitted=1) | {"context": 0},
    ]
    common = {"planned_s": 1.0, "sent_s": 1.0, "done_s": 6.0, "status": "ok", "output_tokens": 2}
    requests = [
        {"request": "off", "class": "offline", "priority": 2, "planned_s": 1.0, "sent_s": 1.0},
        {"request": "n1", "class": "normal", "priority": 1, "cached_tokens": 0, **common},
        {"request": "n2", "class": "normal", "priority": 1, "cached_tokens": 32, **common},
        {"request": "v", "class": "vip", "priority": 0, "cached_tokens": 16, **common},
    ]
    tokens = [*stream("v", 3, 4, 5), *stream("n1", 3, 5), *stream("n2", 6)]
    return trace(steps=steps, batch=batch, requests=requests, tokens=tokens)


def test_by_hand(three):
    found = by_class(three, SLO(ttft_ms=2500, gap_ms=1500))
    assert list(found.columns) == COLUMNS
    assert found.index.name == "class"
    assert found.index.tolist() == ["vip", "normal", "offline"]  # by priority
    assert found["requests"].tolist() == [1, 2, 1]
    assert found.loc["vip", ["ttft_p50_s", "gap_p50_ms", "gap_max_ms"]].tolist() == [2.0, 1000.0, 1000.0]
    normal = found.loc["normal"]
    assert normal["ttft_p50_s"] == pytest.approx(3.5)  # of 2 and 5
    assert normal["ttft_p99_s"] == pytest.approx(2 + 0.99 * 3)
    assert normal["gap_max_ms"] == pytest.approx(2000)
    assert found["preemptions"].tolist() == [0, 1, 0]
    assert found["recomputed_tokens"].tolist() == [0, 40, 0]
    assert found["stalls"].tolist() == [0, 1, 0]
    assert found["cached_tokens"].tolist()[:2] == [16, 32]
    assert pd.isna(found["cached_tokens"]["offline"])
    assert found["goodput_per_s"].tolist() == pytest.approx([0.2, 0, 0])  # one in the 5 s from 1 to 6
    assert found.loc["offline", ["ttft_p50_s", "gap_p50_ms"]].isna().all()


def test_the_summary_says_the_same(three):
    slo = SLO(ttft_ms=2500, gap_ms=1500)
    frame, found = by_class(three, slo), summary(three, slo)
    assert list(found["classes"]) == frame.index.tolist()
    for name, figures in found["classes"].items():
        for column in COLUMNS:
            value = frame.loc[name, column]
            assert figures[column] == (None if pd.isna(value) else pytest.approx(value)), (name, column)
    assert (found["preemptions"], found["recomputed_tokens"], found["cached_tokens"]) == (1, 40, 48)
    assert found["stall_causes"] == {"preemption": 1}
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_an_attached_engine_tells_of_no_preemptions(trace, build):
    stream, _, _ = build
    requests = [{"request": "a", "class": "x", "planned_s": 0.0}, {"request": "b", "class": "y", "planned_s": 0.0}]
    found = by_class(trace(requests=requests, tokens=stream("a", 1.0, 2.0)), SLO())
    assert found.index.tolist() == ["x", "y"]
    assert found[["preemptions", "recomputed_tokens", "cached_tokens"]].isna().all(axis=None)


def test_no_requests(trace):
    found = by_class(trace(), SLO())
    assert list(found.columns) == COLUMNS
    assert found.index.name == "class"
    assert not len(found)
