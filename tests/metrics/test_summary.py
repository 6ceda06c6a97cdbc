from __future__ import annotations

import json

import numpy as np
import pytest

from workbench.config import SLO
from workbench.metrics import summary
from workbench.metrics.summary import spread

SLO_300 = SLO(ttft_ms=1000, gap_ms=300)


def test_by_hand(chat_and_long):
    found = summary(chat_and_long, SLO_300)
    assert [found[k] for k in ("requests", "ok", "errors", "cancelled", "unfinished")] == [3, 3, 0, 0, 0]
    assert found["tokens"] == 8 + 7 + 2
    assert found["duration_s"] == pytest.approx(0.82)  # first send 1.0, last stream ended 1.82
    # all gaps pooled: chat-0 10 10 10 500 250 10 10, chat-1 10 10 500 250 20, doc 10
    pooled = [10] * 8 + [20, 250, 250, 500, 500]
    assert found["gap_count"] == 13
    assert found["gap_p50_ms"] == pytest.approx(10)
    assert found["gap_p90_ms"] == pytest.approx(450)  # place 10.8 of 0..12: between 250 and 500
    assert found["gap_p99_ms"] == pytest.approx(500)
    assert found["gap_max_ms"] == pytest.approx(max(pooled))
    assert found["engine_gap_max_ms"] == pytest.approx(500)
    assert found["lag_max_ms"] == pytest.approx(0, abs=1e-9)
    assert found["ttft_count"] == 3
    assert (found["ttft_p50_s"], found["ttft_max_s"]) == (pytest.approx(0.112), pytest.approx(0.792))
    assert found["output_tokens_per_s"] == pytest.approx(17 / 0.82)
    assert found["prompt_tokens_per_s"] == pytest.approx(1550 / 0.82)
    assert found["requests_per_s"] == pytest.approx(3 / 0.82)
    assert found["goodput_per_s"] == pytest.approx(1 / 0.82)
    assert found["schedule_lag_max_s"] == pytest.approx(0.1)
    assert found["schedule_lag_p99_s"] == pytest.approx(0.03 + 0.98 * 0.07)  # of 0, 0.03, 0.1
    assert found["steps"] == 8
    assert found["preemptions"] == 0
    assert found["peak_activation_bytes"] == 1_002_000  # 1,000 of prefill and two decodes
    assert found["peak_memory_bytes"] == {"host": 900}
    assert found["stalls"] == 2
    assert found["stall_causes"] == {"prefill": 2}
    assert found["stalls_explained"] == 1
    chat, long = found["classes"]["chat"], found["classes"]["long"]
    assert (chat["requests"], chat["gap_count"], chat["stalls"], chat["goodput_per_s"]) == (2, 12, 2, 0)
    assert chat["ttft_max_s"] == pytest.approx(0.112)
    assert (long["requests"], long["gap_count"], long["stalls"]) == (1, 1, 0)
    assert long["goodput_per_s"] == pytest.approx(1 / 0.82)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_an_empty_run_measured_nothing(trace):
    found = summary(trace(), SLO())
    counts = {"requests", "ok", "errors", "cancelled", "unfinished", "tokens", "stalls"}
    for name, value in found.items():
        if name in counts or name.endswith("_count"):
            assert value == 0, name
        elif isinstance(value, dict):
            assert name == "nulls" or value == {}, name
        else:
            assert value is None, name
    assert set(found["nulls"]) == {"steps", "batch", "memory", "client"}


def test_one_token(trace, build):
    stream, _, _ = build
    row = {"request": "a", "class": "chat", "planned_s": 1.0, "sent_s": 1.0, "prompt_tokens": 8, "status": "ok"}
    found = summary(trace(requests=[row], tokens=stream("a", 1.5)), SLO())
    assert (found["tokens"], found["gap_count"], found["gap_p50_ms"], found["gap_max_ms"]) == (1, 0, None, None)
    assert (found["ttft_p50_s"], found["ttft_max_s"]) == (0.5, 0.5)
    assert (found["tpot_count"], found["tpot_p50_ms"]) == (0, None)
    assert found["duration_s"] == 0.5
    assert found["goodput_per_s"] == 2
    assert (found["stalls"], found["stalls_explained"]) == (0, None)
    assert (found["steps"], found["preemptions"], found["peak_activation_bytes"]) == (None, None, None)


def test_all_errors(trace):
    rows = [
        {"request": str(i), "class": "chat", "planned_s": 1.0, "sent_s": 1.0 + i, "done_s": 3.0, "status": "error"}
        for i in range(2)
    ]
    found = summary(trace(requests=rows), SLO())
    assert (found["requests"], found["ok"], found["errors"], found["tokens"]) == (2, 0, 2, 0)
    assert found["duration_s"] == 2
    assert (found["goodput_per_s"], found["output_tokens_per_s"]) == (0, 0)  # time passed and nothing came
    assert (found["ttft_count"], found["ttft_p50_s"], found["gap_p99_ms"]) == (0, None, None)
    assert found["schedule_lag_max_s"] == 1
    assert found["classes"]["chat"]["ttft_max_s"] is None


def test_requests_that_were_never_sent_take_no_time(trace):
    rows = [{"request": "a", "planned_s": 1.0, "status": "unfinished"}, {"request": "b", "planned_s": 2.0}]
    found = summary(trace(requests=rows), SLO())
    assert (found["unfinished"], found["duration_s"], found["goodput_per_s"]) == (2, None, None)
    assert found["nulls"]["requests.sent_s"] == {"share": 1, "why": "never sent"}
    assert found["nulls"]["requests.status"] == {"share": 0.5, "why": "still going on"}


def test_no_rate_without_time(trace):
    row = {"request": "a", "planned_s": 1.0, "sent_s": 1.0, "done_s": 1.0, "status": "error"}
    found = summary(trace(requests=[row]), SLO())
    assert (found["duration_s"], found["goodput_per_s"], found["output_tokens_per_s"]) == (0, None, None)


def test_preemptions_are_counted_by_victim(trace):
    victims = {1: ["a", "b"], 2: [], 3: ["a"]}
    steps = [{"step": s, "start_s": s, "end_s": s + 1, "preempted": who} for s, who in victims.items()]
    assert summary(trace(steps=steps), SLO())["preemptions"] == 3
    unrecorded = summary(trace(steps=[{"step": 1, "end_s": 1.0}]), SLO())
    assert (unrecorded["preemptions"], unrecorded["recomputed_tokens"]) == (None, None)  # not recorded is not none


def test_the_share_of_explained_stalls(trace, build):
    stream, decodes, prefill = build
    steps = [{"step": s, "start_s": a, "end_s": b} for s, a, b in ((1, 0, 1.0), (2, 1.0, 1.5), (3, 1.5, 2.0))]
    batch = [*decodes("a", 1, 2, 3), prefill("doc", 2, 900)]
    found = summary(trace(tokens=stream("a", 1.0, 1.5, 2.0), batch=batch, steps=steps), SLO())
    assert found["stall_causes"] == {"prefill": 1, "unknown": 1}
    assert found["stalls_explained"] == 0.5


def test_nulls_are_explained(trace, build):
    stream, decodes, _ = build
    attached = summary(trace(tokens=stream("a", 1.0, 2.0)), SLO())["nulls"]
    assert attached["tokens.engine_s"] == {
        "share": 1,
        "why": "no step records: an attached engine, or its probe was off",
    }
    steps = [{"step": 1, "end_s": 1.0, "activation_bytes": 5}, {"step": 9, "end_s": 3.0}]
    live = trace(tokens=stream("a", 1.0, 2.0), batch=decodes("a", 1), steps=steps)
    nulls = summary(live, SLO())["nulls"]
    assert nulls["tokens.engine_s"]["share"] == 0.5
    assert "lost, or is not in yet" in nulls["tokens.engine_s"]["why"]
    assert nulls["steps.activation_bytes"] == {"share": 0.5, "why": "no peak was measured in this step"}
    assert nulls["steps.kv_use"] == {"share": 1, "why": "this engine does not report it"}
    assert "steps.end_s" not in nulls


def test_percentiles_interpolate_linearly():
    found = spread(np.array([0.0, 10.0, np.nan]), "x", "ms")
    assert found == {"x_count": 2, "x_p50_ms": 5, "x_p90_ms": 9, "x_p99_ms": pytest.approx(9.9), "x_max_ms": 10}
    assert spread(np.array([np.nan]), "x", "s") == {
        "x_count": 0,
        "x_p50_s": None,
        "x_p90_s": None,
        "x_p99_s": None,
        "x_max_s": None,
    }
