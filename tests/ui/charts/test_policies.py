"""Policies side by side: one scale, and the figures of each class."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from workbench.config import SLO
from workbench.ui.charts import Look, policy_chart, policy_table, policy_waits

PROMISE = SLO(gap_ms=100, ttft_ms=500)


@pytest.fixture(scope="module")
def runs(make_crowded):
    """Two policies on one load. SYNTHETIC."""
    return {"chunked": make_crowded(compute=True), "qos": make_crowded("qos")}


def test_table_has_each_class_of_each_policy_and_all(runs):
    table = policy_table(runs, PROMISE)
    assert table.index.tolist() == [(p, c) for p in runs for c in ("vip", "chat", "offline", "all")]
    for policy, trace in runs.items():
        asked = trace.requests.assign(ttft=lambda frame: frame["first_s"] - frame["planned_s"])
        vip = asked[asked["class"] == "vip"]
        row = table.loc[(policy, "vip")]
        assert row["requests"] == 3
        assert row["ttft_p50_s"] == pytest.approx(vip["ttft"].median())
        assert row["ttft_p99_s"] == pytest.approx(np.percentile(vip["ttft"], 99))
        tokens = trace.tokens.sort_values(["request", "client_s"])
        gaps = tokens.groupby("request")["client_s"].diff().mul(1000)
        assert table.loc[(policy, "all"), "gap_max_ms"] == pytest.approx(gaps.max())
        mine = gaps[tokens["request"].str.startswith("vip")]
        assert row["gap_p99_ms"] == pytest.approx(np.nanpercentile(mine, 99))
        lost = trace.steps["preempted"].explode().dropna()
        assert row["preemptions"] == lost.str.startswith("vip").sum()
        assert table.loc[(policy, "all"), "preemptions"] == len(lost)


def test_mfu_is_of_a_policy_and_not_of_a_class(runs):
    mfu = policy_table(runs, PROMISE)["mfu"]
    assert 0 < mfu[("chunked", "all")] < 1
    assert mfu.drop(("chunked", "all")).isna().all(), "no peak is known of the other"


def test_all_plots_of_gaps_have_one_scale(runs, find):
    spec = policy_chart(runs, PROMISE).to_dict()
    plots = spec["vconcat"][0]["concat"]
    assert [plot["title"]["text"] for plot in plots] == ["chunked", "qos"]
    times, gaps = [], []
    for plot in plots:
        for layer in plot["layer"]:
            for name, into in (("x", times), ("y", gaps)):
                scale = layer.get("encoding", {}).get(name, {}).get("scale", {})
                into += [tuple(scale["domain"])] if "domain" in scale else []
    assert len(set(times)) == 1
    assert len(set(gaps)) == 1
    assert times[0][1] == max(trace.requests["done_s"].max() for trace in runs.values())


def test_each_plot_says_its_own_figures(runs):
    plots = policy_chart(runs, PROMISE).to_dict()["vconcat"][0]["concat"]
    stalls = policy_table(runs, PROMISE)["stalls"]
    for plot, policy in zip(plots, runs, strict=True):
        assert f"{stalls[(policy, 'all')]:.0f} stalls" in plot["title"]["subtitle"]


def test_waits_put_the_policies_of_a_class_together(runs, rows):
    data = [row for row in rows(policy_waits(runs, PROMISE)) if "p50" in row]
    ttft = pd.DataFrame(data[:6])
    assert ttft["class"].tolist() == ["vip", "vip", "chat", "chat", "offline", "offline"]
    assert ttft["policy"].tolist() == ["chunked", "qos"] * 3
    assert ttft["row"].is_monotonic_increasing
    table = policy_table(runs, PROMISE)
    assert ttft["p99"].tolist() == pytest.approx([table.loc[(p, c), "ttft_p99_s"] for p, c in zip(
        ttft["policy"], ttft["class"], strict=True)], abs=1e-4)  # fmt: skip
    assert {row["promise"] for row in rows(policy_waits(runs, PROMISE)) if "promise" in row} == {0.5, 100.0}


def test_rows_stay_bounded_and_the_width_is_kept(runs, rows):
    many = {f"policy {n}": trace for n in range(3) for trace in runs.values()}
    assert len(rows(policy_chart(many, PROMISE, Look(limit=900)))) <= 900
    plots = policy_chart(many, PROMISE, Look(width=400)).to_dict()["vconcat"][0]
    assert plots["columns"] == 1
    assert {plot["width"] for plot in plots["concat"]} == {400}


def test_no_run_is_said(svg):
    assert "no run" in svg(policy_chart({}, PROMISE))
