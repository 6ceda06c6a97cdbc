"""A point of the charts explained: worked out by hand for three steps and two streams."""

from __future__ import annotations

import pytest

from workbench.config import SLO
from workbench.engine_stamps import join_engine_stamps
from workbench.trace import TABLES, Trace, table_of
from workbench.ui.live.explain import explain

SLO_ = SLO(gap_ms=200)


@pytest.fixture(scope="module")
def trace():
    """A chat decodes; its first gap holds a step of 400 ms with 500 tokens of doc-0, its second one of 50 ms."""
    steps = [
        {"step": 7, "scheduled_s": 1.0, "start_s": 1.0, "end_s": 1.05, "decode_tokens": 1, "prefill_tokens": 0,
         "running": 1, "waiting": 1, "kv_use": 0.25, "revision": 3, "preempted": []},
        {"step": 8, "scheduled_s": 1.05, "start_s": 1.05, "end_s": 1.45, "decode_tokens": 1, "prefill_tokens": 500,
         "running": 2, "waiting": 0, "kv_use": 0.5, "revision": 3, "preempted": ["doc-9"], "predicted_ms": 380.0},
        {"step": 9, "scheduled_s": 1.45, "start_s": 1.45, "end_s": 1.5, "decode_tokens": 1, "prefill_tokens": 20,
         "running": 2, "waiting": 0, "kv_use": 0.5, "revision": 3, "preempted": []},
    ]  # fmt: skip
    batch = [{"step": n, "request": "chat-0", "tokens": 1, "context": 30 + n, "prefill": False, "emitted": 1}
             for n in (7, 8, 9)]  # fmt: skip
    batch += [{"step": 8, "request": "doc-0", "tokens": 500, "context": 0, "prefill": True, "emitted": 0},
              {"step": 9, "request": "doc-0", "tokens": 20, "context": 500, "prefill": True, "emitted": 1}]  # fmt: skip
    tokens = [{"request": "chat-0", "index": n, "n": 1, "client_s": at} for n, at in enumerate((1.051, 1.451, 1.501))]
    tokens.append({"request": "doc-0", "index": 0, "n": 1, "client_s": 1.501})
    requests = [
        {"request": "chat-0", "class": "chat", "priority": 1, "prompt_tokens": 30, "planned_s": 0.5, "first_s": 1.051},
        {"request": "doc-0", "class": "document", "priority": 2, "prompt_tokens": 520, "planned_s": 1.0},
    ]
    knobs = [{"revision": 3, "applied_s": 0.0, "policy": "target_gap", "budget": 512}]
    rows = {"steps": steps, "batch": batch, "tokens": tokens, "requests": requests, "knobs": knobs}
    tables = {name: table_of(name, rows.get(name, [])) for name in TABLES}
    tables["tokens"] = join_engine_stamps(tables["tokens"], tables["batch"], tables["steps"])
    return Trace(tables, {"label": "live CPU"})


def facts(detail):
    return dict(detail["facts"])


def test_a_stall_names_its_cause_its_step_and_the_prompt_behind_it(trace):
    detail = explain(trace, SLO_, 1.451, "chat-0")
    assert detail["title"] == "Gap of chat-0 at 1.45 s"
    told = facts(detail)
    assert told["gap"] == "400.0 ms, a stall: the promise is 200 ms"
    assert told["cause"].startswith("prefill: prefill of doc-0, 500 tokens")
    assert told["behind it"] == "doc-0 (document, priority 2), a prompt of 520 tokens in 2 steps"
    assert told["step 8"] == "400.0 ms, predicted 380.0 ms; 1 decode tokens, 500 prefill tokens"
    assert told["prefill"] == "doc-0 500 after 0"
    assert told["preempted"] == "doc-9"
    assert told["engine"] == "2 running, 0 waiting · KV 50% · revision 3: target_gap, budget 512"
    assert (detail["t0"], detail["t1"], detail["step"]) == (pytest.approx(1.051), pytest.approx(1.451), 8)


def test_a_gap_within_the_promise_is_explained_as_well(trace):
    told = facts(explain(trace, SLO_, 1.501, "chat-0"))
    assert told["gap"] == "50.0 ms, within the promise"
    assert told["step 9"].startswith("50.0 ms; 1 decode tokens, 20 prefill tokens")


@pytest.mark.parametrize(("at_s", "step"), [(1.0, 7), (1.04, 7), (1.2, 8), (1.449, 8), (1.47, 9), (99.0, 9)])
def test_the_step_that_ran_at_a_time_is_found(trace, at_s, step):
    assert explain(trace, SLO_, at_s)["step"] == step


def test_a_step_can_be_asked_for_by_its_number(trace):
    detail = explain(trace, SLO_, 0.0, step=9)
    assert (detail["title"], detail["t0"], detail["t1"]) == ("Step 9 at 1.45 s", 1.45, 1.5)
    assert facts(detail)["prompt"] == "doc-0 (document, priority 2), a prompt of 520 tokens in 2 steps"


def test_a_step_of_decodes_alone_has_no_prompt_behind_it(trace):
    assert [label for label, _ in explain(trace, SLO_, 0.0, step=7)["facts"]] == ["step 7", "engine"]


def test_what_is_not_there_is_said(trace):
    for detail in (
        explain(trace, SLO_, 5.0, "chat-0"),
        explain(trace, SLO_, 1.451, "nobody"),
        explain(trace, SLO_, 0.0, step=1000),
    ):
        assert detail["t0"] is detail["t1"] is detail["step"] is None
        assert len(detail["facts"]) == 1


def test_a_gap_without_step_records_says_that_its_cause_is_unknown(trace):
    empty = {name: trace.tables[name].slice(0, 0) for name in ("steps", "batch")}
    detail = explain(Trace({**trace.tables, **empty}, trace.meta), SLO_, 1.451, "chat-0")
    assert facts(detail)["cause"].startswith("unknown")
    assert detail["step"] is None
