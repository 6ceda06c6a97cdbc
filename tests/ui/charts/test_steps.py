"""The step chart: what steps are made of, as wide as they were long."""

from __future__ import annotations

import pandas as pd

from workbench.ui.charts import Look, step_chart
from workbench.ui.charts.data import timeline


def test_step_chart_conserves_tokens(trace, rows):
    data = [row for row in rows(step_chart(trace)) if "kind" in row]
    drawn = pd.DataFrame(data).groupby("kind")["tokens"].sum()
    batch = trace.batch
    assert drawn["doc-0"] == batch.loc[(batch["request"] == "doc-0") & batch["prefill"], "tokens"].sum() == 3000
    assert drawn["decode"] == trace.steps["decode_tokens"].sum()
    assert drawn.sum() == trace.steps[["prefill_tokens", "decode_tokens"]].sum().sum()
    for _, bars in pd.DataFrame(data).groupby("step"):  # stacked without a hole, decode at the bottom
        bars = bars.sort_values("y")
        assert bars["y"].tolist() == [0, *bars["y2"].tolist()[:-1]]
        assert "decode" not in bars["kind"].tolist()[1:]


def test_step_chart_without_a_batch_table_still_has_prefill(trace, rows, with_rows):
    data = rows(step_chart(with_rows(trace, batch=[])))
    drawn = pd.DataFrame([row for row in data if "kind" in row]).groupby("kind")["tokens"].sum()
    assert drawn.to_dict() == {
        "decode": trace.steps["decode_tokens"].sum(),
        "other prefill": trace.steps["prefill_tokens"].sum(),
    }


def test_bars_are_as_long_as_their_steps(trace, rows, with_rows):
    steps = [{"step": n, "start_s": at, "end_s": at + 0.4, "decode_tokens": 1} for n, at in enumerate([0.0, 0.4, 5.0])]
    look = Look(x_domain=(0.0, 7.2), width=720)  # a pixel is 10 ms
    bars = [row for row in rows(step_chart(with_rows(trace, steps=steps, batch=[], knobs=[]), look)) if "kind" in row]
    assert [(bar["t"], bar["t2"]) for bar in bars] == [(0.0, 0.39), (0.4, 0.79), (5.0, 5.39)]


def test_step_time_line_breaks_where_the_engine_was_idle(trace, rows, with_rows):
    steps = [
        {"step": n, "start_s": at, "end_s": at + 0.1, "prefill_tokens": 0, "decode_tokens": 1}
        for n, at in enumerate([0.0, 0.1, 5.0])
    ]
    line = [
        row for row in rows(step_chart(with_rows(trace, steps=steps, batch=[], knobs=[]))) if row.keys() == {"t", "ms"}
    ]
    assert [(row["t"], row["ms"]) for row in line if row["ms"] is None] == [(0.2001, None), (5.1001, None)]


def test_steps_without_an_end_are_left_out(trace, with_rows):
    steps = trace.tables["steps"].to_pylist()
    steps[-1]["end_s"] = None
    steps[0]["start_s"] = None
    frame = timeline(with_rows(trace, steps=steps))
    assert len(frame) == len(steps) - 1
    assert frame["start"].iloc[0] == steps[0]["scheduled_s"]
