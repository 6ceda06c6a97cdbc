"""Charts of a study, on made-up results."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from workbench.config import EngineConfig
from workbench.tune.answer.answer import Answer
from workbench.tune.answer.confirm import confirm
from workbench.tune.goal import Goal
from workbench.tune.space import Space
from workbench.ui.charts import Look, front_chart, importance_chart, slo_chart, study_chart
from workbench.ui.charts.grid import sampled_edges
from workbench.ui.charts.theme import DARK, LIGHT

sys.path.insert(0, str(Path(__file__).parents[2] / "tune"))
from made_results import MadeUpPlayer, result

GOAL = Goal(("goodput",), {"gap_p99_ms": 200})


def at(number, budget, chunk, goodput, gap, **more):
    return result(number, {"policy": "chunked", "budget": budget, "chunk": chunk}, goodput, gap=gap, **more)


RESULTS = [
    at(0, 256, 0, 1.5, 120.0),
    at(1, 512, 0, 2.0, 190.0),
    at(2, 1024, 0, 2.4, 300.0),
    at(3, 1024, 128, 1.8, 110.0),
    at(4, 1024, 64, 1.0, 60.0, state="stopped"),
    result(5, {"policy": "target_gap", "target_gap_ms": 150.0}, 1.9, gap=151.0),
    at(6, 512, 128, 9.0, 100.0, state="failed", objectives=()),
]
CHARTS = [slo_chart, study_chart, front_chart, importance_chart]


@pytest.fixture(scope="module")
def answer():
    return Answer.of(RESULTS, GOAL)


def cells(rows, chart):
    return {(row["x"], row["y"]): row for row in rows(chart) if "figure" in row and "nearest" in row}


def corners(rows, chart):
    return [row for row in rows(chart) if set(row) == {"x", "x2", "y", "y2"}]


def test_each_sampled_setting_has_its_cell_its_figure_and_its_nearest_limit(answer, rows):
    found = cells(rows, slo_chart(answer))
    # budgets 256, 512, 1024 across; caps 64, 128 and off up: off is the largest
    assert {place: row["figure"] for place, row in found.items()} == {
        (0, 2): "1.5", (1, 2): "2", (2, 2): "2.4", (2, 1): "1.8", (2, 0): "stopped",
    }  # fmt: skip
    assert found[1, 2]["nearest"] == "gap -5%"
    assert found[2, 2]["kind"] == "breaks a limit"
    assert found[2, 0]["kind"] == "stopped, others are better"
    assert found[1, 2]["shade"] > found[2, 1]["shade"] > found[0, 2]["shade"]


def test_the_edge_parts_what_is_within_the_limits_from_what_is_not(answer, rows):
    edges = [row for row in corners(rows, slo_chart(answer)) if row["x"] == row["x2"] or row["y"] == row["y2"]]
    # 512 and 1024 without a cap; 1024 with the cap 128 and without. What was stopped is on neither side.
    assert sorted((edge["x"], edge["x2"], edge["y"], edge["y2"]) for edge in edges) == [(2, 2, 2, 3), (2, 3, 2, 2)]


def test_between_cells_that_do_not_touch_the_edge_is_half_way():
    # across: cells 0 and 3 of a row; up: cells 0 and 2 of a column
    assert sampled_edges({(0, 0): True, (3, 0): False}) == [{"x": 2.0, "x2": 2.0, "y": 0, "y2": 1}]
    assert sampled_edges({(0, 0): True, (0, 2): False, (0, 3): False}) == [{"x": 0, "x2": 1, "y": 1.5, "y2": 1.5}]


def test_the_pick_is_framed_and_every_play_is_a_mark(answer, rows):
    chart = slo_chart(answer)
    frames = [row for row in corners(rows, chart) if row["x"] != row["x2"] and row["y"] != row["y2"]]
    assert [(round(row["x"]), round(row["y2"])) for row in frames] == [(1, 3)]
    assert sorted(row["trial"] for row in rows(chart) if "trial" in row) == [0, 1, 2, 3, 4]


def test_a_space_keeps_the_places_that_were_not_sampled(answer, rows, subtitle):
    space = Space({"budget": (128, 256, 512, 1024, 2048), "chunk": (64, 128, 0)}, EngineConfig())
    chart = slo_chart(answer, space)
    assert (2, 2) in cells(rows, chart), "512 is the third budget now"
    assert "1 setting of a policy without budget and chunk cap is not in the grid" in subtitle(chart)


def test_several_settings_of_a_cell_show_the_best_within_the_limits(rows):
    results = [
        result(0, {"budget": 64, "chunk": 0, "policy": "qos"}, 9.0, gap=300.0),
        result(1, {"budget": 64, "chunk": 0, "policy": "chunked"}, 1.0),
        result(2, {"budget": 64, "chunk": 0, "policy": "priority"}, 2.0),
    ]
    (cell,) = cells(rows, slo_chart(Answer.of(results, GOAL))).values()
    assert (cell["figure"], cell["setting"]) == ("2", "budget 64 chunk off priority")


def test_the_line_is_the_best_within_the_limits_so_far(answer, rows):
    line = [(row["at"], row["reached"]) for row in rows(study_chart(answer)) if set(row) == {"at", "reached"}]
    assert line == [(1.0, 1.5), (2.0, 2.0), (7.0, 2.0)]


def test_a_confirmation_stands_behind_the_search(rows, subtitle):
    player = MadeUpPlayer(lambda point, seed: (1.9, 150.0))
    confirmed = Answer.of(RESULTS, GOAL, confirm(RESULTS, GOAL, player, rounds=1))
    chart = study_chart(confirmed)
    assert [row["at"] for row in rows(chart) if "seed" in row] == [1, 2, 3, 4, 5, 6, 8, 9]
    assert "the confirmation, on fresh seeds" in subtitle(chart)
    assert "1 trial failed or was interrupted and is not drawn" in subtitle(chart)


def test_the_front_is_marked_and_the_pick_and_the_runner_up_are_named(rows):
    results = [
        at(0, 64, 0, 1.0, 50.0, ttft_p99_s=4.0, tokens_per_s=100.0),
        at(1, 256, 0, 2.0, 150.0, ttft_p99_s=2.0, tokens_per_s=100.0),
        at(2, 128, 0, 1.5, 160.0, ttft_p99_s=3.0, tokens_per_s=90.0),
    ]
    found = {row["setting"]: row for row in rows(front_chart(Answer.of(results, GOAL))) if "front" in row}
    assert {row["setting"].split()[2]: (row["front"], row["name"]) for row in found.values()} == {
        "64": (True, ""), "256": (True, "pick"), "128": (False, "runner-up"),
    }  # fmt: skip


def test_importance_needs_enough_settings(answer, svg):
    assert "Too few settings were measured to tell" in svg(importance_chart(answer))


@pytest.mark.parametrize("chart", CHARTS)
def test_before_anything_was_played_each_says_so(chart, svg):
    assert "othing was played" in svg(chart(Answer.of([], GOAL))) or chart is importance_chart


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize(("theme", "palette"), [("light", LIGHT), ("dark", DARK)])
def test_each_says_where_its_numbers_come_from_and_follows_the_theme(chart, theme, palette, answer, svg):
    drawn = svg(chart(answer, look=Look(theme=theme, height=200)))
    assert "live CPU" in drawn
    assert palette.ground in drawn
