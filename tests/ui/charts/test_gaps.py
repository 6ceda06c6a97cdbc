"""The gap chart: every gap, every stall with its cause, the prefill of long prompts."""

from __future__ import annotations

import pandas as pd
import pytest

from workbench import metrics
from workbench.config import SLO
from workbench.ui.charts import gap_chart, gap_domain, long_prefills
from workbench.ui.charts.gap_marks import shortest_told
from workbench.ui.charts.stall_marks import CAUSE_SHAPES, cause_words


def test_gap_chart_has_every_gap_and_stall(trace, rows):
    data = rows(gap_chart(trace, SLO(gap_ms=200)))
    frame = trace.tokens.sort_values(["request", "client_s"])
    gaps = frame.groupby("request")["client_s"].diff().dropna() * 1000
    drawn = [row["gap"] for row in data if "n" in row]
    assert sorted(drawn) == pytest.approx(sorted(gaps), abs=0.006)
    stalls = [row for row in data if "cause" in row]
    assert len(stalls) == (gaps > 200).sum() > 0
    assert all(row["t0"] == pytest.approx(row["t"] - row["gap"] / 1000, abs=1e-3) for row in stalls)
    assert [row["gap"] for row in data if row.keys() == {"gap"}] == [200.0]  # the SLO line


def test_gap_chart_shades_the_long_prefill(trace, svg):
    batch = trace.batch.merge(trace.steps, on="step")
    mine = batch[(batch["request"] == "doc-0") & batch["prefill"]]
    (span,) = long_prefills(trace).to_dict("records")
    assert (span["request"], span["prompt_tokens"], span["steps"]) == ("doc-0", 3000, len(mine))
    assert (span["start"], span["end"]) == (mine["start_s"].min(), mine["end_s"].max())
    assert f"doc-0: 3,000 tokens in {len(mine)} steps" in svg(gap_chart(trace, SLO()))
    assert long_prefills(trace, long_tokens=3001).empty


def test_a_prompt_computed_twice_has_two_spans(trace, with_rows):
    steps = [
        {"step": n, "start_s": float(n), "end_s": n + 0.5, "prefill_tokens": 0, "decode_tokens": 0} for n in range(5)
    ]
    made = [(0, True), (1, True), (2, False), (3, False), (4, True)]
    batch = [{"step": n, "request": "x", "tokens": 9, "prefill": prefill} for n, prefill in made]
    asked = [{"request": "x", "prompt_tokens": 2000}]
    spans = long_prefills(with_rows(trace, steps=steps, batch=batch, requests=asked))
    assert spans[["start", "end", "steps"]].values.tolist() == [[0.0, 1.5, 2], [4.0, 4.5, 1]]


def test_without_step_records_the_span_is_send_to_first(make_trace, svg):
    attached = make_trace(kind="attached")
    (span,) = long_prefills(attached).to_dict("records")
    doc = attached.requests.set_index("request").loc["doc-0"]
    assert (span["start"], span["end"], span["steps"]) == (doc["sent_s"], doc["first_s"], None)
    assert "(sent → first)" in svg(gap_chart(attached, SLO()))


def test_many_streams_are_told_apart_by_class(make_trace, rows):
    data = rows(gap_chart(make_trace(chats=9, output=20), SLO()))
    assert {row["class"] for row in data if "n" in row} == {"chat", "long"}


def test_tokens_that_came_together_do_not_take_most_of_the_axis():
    assert shortest_told(0.01, 60.0) == 2.0
    assert shortest_told(25.0, 60.0) == 25.0


def test_gap_domain_holds_all_runs_and_the_slo(make_trace):
    traces = [make_trace(budget=64), make_trace("monolithic", 8192)]
    low, high = gap_domain(traces, SLO())
    gaps = pd.concat([t.tokens.sort_values("client_s").groupby("request")["client_s"].diff() for t in traces]) * 1000
    assert low == 10.0
    assert high == pytest.approx(5 * gaps.max(), rel=0.01)
    assert gap_domain([make_trace(budget=64)], SLO(gap_ms=5000))[1] == 25_000


def test_a_stall_has_the_shape_of_its_cause(make_crowded, rows, svg, find):
    trace = make_crowded()
    chart = gap_chart(trace, SLO(gap_ms=100))
    stalls = [row for row in rows(chart) if "cause" in row]
    assert {row["cause"] for row in stalls} == {"preemption"}
    assert ">preemption</text>" in svg(chart)
    assert ">prefill</text>" not in svg(chart), "the legend has what there is"
    lost = trace.steps[trace.steps["preempted"].map(len) > 0].set_index("step")["preempted"]
    for row in stalls:  # the step to blame is the one in which this stream was preempted
        assert row["stream"] in lost[row["step"]]
    assert [list(one["domain"]) for one in find(chart.to_dict(), "scale") if one.get("domain") == ["preemption"]]


def test_every_cause_has_a_shape_of_its_own():
    assert tuple(CAUSE_SHAPES) == metrics.CAUSES
    assert len(set(CAUSE_SHAPES.values())) == len(CAUSE_SHAPES)
    assert cause_words(["unknown", "preemption", "unknown"]) == "preemption (cross), unknown (circle)"
    assert cause_words([]) == ""
