"""The chart of a comparison, on made-up rounds."""

from __future__ import annotations

import pytest

from workbench.tune.compare.comparison import Comparison, Round
from workbench.ui.charts.comparison import advantages, comparison_chart, rounds_of
from workbench.workload.setting import Setting


@pytest.fixture
def found():
    """SYNTHETIC: A has 10 % less gap and 5 % less throughput, with noise."""
    made = Comparison(
        Setting(name="budget 64", budget=64),
        Setting(name="budget 256", budget=256),
        "made_up",
        20,
        origin="simulated · roofline, uncalibrated",
    )
    for number, noise in enumerate((0.0, 0.02, -0.02, 0.01, -0.01, 0.0)):
        order = "AB" if number % 2 else "BA"
        a = {"throughput": 95.0 * (1 + noise), "gap_p99": 90.0 * (1 - noise)}
        made.rounds.append(Round(number, number, order, a, {"throughput": 100.0, "gap_p99": 100.0}))
    return made


def test_to_the_right_a_is_better_whatever_the_measure(found):
    rows = advantages(found).set_index("measure")
    assert rows.loc["gap P99", "times"] == pytest.approx(1 / 0.9, abs=0.01)
    assert rows.loc["prompt and output throughput", "times"] == pytest.approx(0.95, abs=0.01)
    assert (rows["low"] < rows["times"]).all()
    assert (rows["times"] < rows["high"]).all()
    assert rows["better"].tolist() == ["B", "A"]
    assert rows["part"].tolist() == ["exploratory", "primary"]
    each = rounds_of(found)
    assert each["times"].iloc[0] == pytest.approx(1 / 0.9)
    assert each["round"].tolist() == [1, 2, 3, 4, 5, 6]


def test_it_says_what_it_shows_and_where_it_comes_from(found, svg):
    drawn = svg(comparison_chart(found))
    assert "simulated · roofline, uncalibrated" in drawn
    assert "A better by 10.0 %" in drawn
    assert "budget 64 against budget 256, made_up" in drawn
    assert "gap P99" in drawn


def test_before_two_rounds_it_says_why_it_is_empty(found, svg):
    del found.rounds[1:]
    assert "needs 3 more rounds" in svg(comparison_chart(found))


def test_rounds_that_differ_by_nothing_are_drawn(found, svg):
    for one in found.rounds:
        one.a.update(one.b)
    drawn = svg(comparison_chart(found))
    assert "no difference shown" in drawn
