"""Charts of a plan, on plays that are made up."""

from __future__ import annotations

import pytest

from workbench.planning import Asked, Planner
from workbench.planning.rule import Verdict
from workbench.ui.charts import Look
from workbench.ui.charts.plan import capacity_chart, plan_chart, plan_table
from workbench.ui.charts.theme import DARK, LIGHT

BREAKS = {(512, 0): 6.0, (2048, 0): 12.0, (2048, 512): 11.0}


class Player:
    """Every setting breaks at a rate of its own; slow steps serve half, fast ones twice as much. SYNTHETIC."""

    def __init__(self, told):
        self.told = told

    def start(self, progress):
        pass

    stop = close = lambda self: None

    def play(self, place, rate, residence_s, step_time=None):
        self.told()
        factor = {None: 1.0, "high": 0.5, "low": 2.0}[getattr(step_time, "end", None)]
        factor *= 0.25 if place.knobs.policy == "decode_first" else 1.0
        met = rate <= factor * BREAKS[place.knobs.budget, place.knobs.chunk]
        facts = dict.fromkeys(("busy", "prefill_time", "kv_max", "kv_mean", "largest_prompt", "mfu"), 0.5)
        facts |= dict.fromkeys(("running_max", "waiting_mean", "at_cap", "preemptions", "largest_step"), 0.0)
        share = 1.0 if met else 0.5
        return Verdict(rate, met, share, 0.0, 1 - share, 0.0, 100, 1.0, True, 0.0, ("chat", share), facts)


@pytest.fixture
def made(monkeypatch):
    monkeypatch.setattr("workbench.planning.planner.Player", Player)

    def make(**asked):
        fields = {"budgets": (512, 2048), "chunks": (0, 512), "need": 8.0} | asked
        return Planner(Asked.of("azure-like", **fields), workers=1).run()

    return make


def test_each_sampled_setting_has_its_figure_its_band_and_its_limit(made, rows, svg):
    plan = made()
    chart = plan_chart(plan)
    cells = {row["setting"]: row for row in rows(chart) if "feasible" in row}
    assert len(cells) == 4, "nothing is interpolated"
    best = cells["budget 2,048, chunk off"]
    assert best["figure"] == f"{plan.best.rate:.3g}/s"
    assert best["band"] == "{:.3g} to {:.3g}".format(*plan.best.rates())
    assert cells["budget 2,048, chunk 512"]["band"].startswith("~"), "taken over, and marked so"
    assert cells["budget 512, chunk 512"]["figure"].endswith(" = off")
    drawn = svg(chart)
    assert "simulated, roofline, uncalibrated" in drawn
    assert "gap: steps with prefill" in drawn
    assert best["band"] in chart.to_dict()["description"]


def lines(found):
    """Those of the edge; the frame of the best cell is a little inside of it, and so not at whole numbers."""
    return [row for row in found if set(row) == {"x", "x2", "y", "y2"} and row["x"] == int(row["x"])]


def test_the_edge_parts_what_can_serve_the_need_from_what_cannot(made, rows):
    edges = lines(rows(plan_chart(made())))
    assert sorted(edge["y"] for edge in edges) == [0, 1]
    assert all((edge["x"], edge["x2"], edge["y2"]) == (1, 1, edge["y"] + 1) for edge in edges), "512 serves 6 of 8"
    assert not lines(rows(plan_chart(made(need=None))))


def test_policies_are_lines_from_low_to_high(made, rows, svg):
    plan = made(policies=("chunked", "decode_first"))
    chart = capacity_chart(plan)
    bars = {row["name"]: row for row in rows(chart) if "name" in row}
    assert list(bars) == ["chunked", "decode_first"]
    for row in plan.policies:
        bar = bars[row.policy]
        assert (bar["rate"], bar["low"], bar["high"]) == (row.rate, *row.rates())
        assert bar["low"] < bar["rate"] < bar["high"]
    assert {"need": 8.0} in rows(chart)
    assert "8 requests/s needed" in svg(chart)
    alone = capacity_chart(made())
    assert len({row["name"] for row in rows(alone) if "name" in row}) == 3, "each setting that was played"


@pytest.mark.parametrize(("theme", "palette"), [("light", LIGHT), ("dark", DARK)])
def test_themes(made, svg, theme, palette):
    for chart in (plan_chart, capacity_chart):
        drawn = svg(chart(made(), Look(theme=theme)))
        assert palette.decode in drawn
        assert f'fill="{palette.ground}"' in drawn


def test_the_table_has_what_the_charts_show(made):
    plan = made(price=2.0)
    table = plan_table(plan)
    assert table["requests/s"].tolist() == [row.rate for row in plan.cells]
    assert {"band from", "to", "limited by", "MFU", "KV max", "cost per M output tokens", "label"} <= set(table)
    assert "cost from" in table
    assert "replicas" in table


def test_a_plan_without_plays_says_so(made, svg):
    plan = made()
    plan.cells, plan.policies = [], []
    for chart in (plan_chart, capacity_chart):
        assert "Nothing was played yet." in svg(chart(plan))
