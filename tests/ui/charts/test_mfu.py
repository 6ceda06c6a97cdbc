"""The MFU chart: every step by kind, medians, and the peak's source."""

from __future__ import annotations

import pandas as pd
import pytest

from workbench.trace import Trace
from workbench.ui.charts import Look, mfu_chart


def points(rows, chart):
    return pd.DataFrame([row for row in rows(chart) if "gflop" in row])


def test_steps_are_of_the_kind_that_their_tokens_say(crowded, rows):
    drawn = points(rows, mfu_chart(crowded)).set_index("step").sort_index()
    steps = crowded.steps.set_index("step")
    expected = pd.Series("mixed", index=steps.index)
    expected[steps["prefill_tokens"] == 0] = "decode"
    expected[steps["decode_tokens"] == 0] = "prefill"
    assert drawn["kind"].str.partition(" ")[0].tolist() == expected.tolist()
    assert drawn["tokens"].tolist() == (steps["prefill_tokens"] + steps["decode_tokens"]).tolist()


def test_mfu_is_work_over_time_and_peak(crowded, rows):
    peak = crowded.meta["compute"]["peak"]["flops_per_s"]
    for row in points(rows, mfu_chart(crowded)).to_dict("records"):
        assert row["mfu"] == pytest.approx(100 * row["gflop"] * 1e9 / (row["ms"] / 1e3 * peak), rel=5e-3)


def test_legend_has_medians_and_heading_has_the_source(crowded, rows, svg, subtitle):
    chart = mfu_chart(crowded)
    drawn = points(rows, chart)
    decode = drawn.loc[drawn["kind"].str.startswith("decode"), "mfu"]
    assert f"decode ({len(decode):,} steps): median {decode.median():,.1f} %" in svg(chart)
    assert subtitle(chart) == "live CPU · share of the peak, 2 TFLOP/s: measured matmul, 1 thread, bf16"
    levels = [row["mfu"] for row in rows(chart) if row.keys() == {"mfu", "kind"}]
    assert levels[0] == pytest.approx(decode.median(), abs=1e-3)


def test_a_long_run_is_thinned_and_keeps_its_highest(crowded, rows, subtitle):
    chart = mfu_chart(crowded, Look(limit=140))
    assert len(rows(chart)) <= 140
    assert points(rows, chart)["mfu"].max() == points(rows, mfu_chart(crowded))["mfu"].max()
    assert "steps drawn: the highest of each bucket" in subtitle(chart)


def test_without_a_peak_it_says_why(crowded, svg):
    compute = {**crowded.meta["compute"], "peak": None, "missing": {"peak": "no compiler"}}
    chart = mfu_chart(Trace(crowded.tables, {**crowded.meta, "compute": compute}))
    assert "No MFU in this trace" in svg(chart)
    assert "no compiler" in svg(chart)
    assert "role-axis" not in svg(chart)
