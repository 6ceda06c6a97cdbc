"""Settings with their plays: means, intervals, who is ahead, and the Pareto front, on made-up results."""

from __future__ import annotations

import math

import pytest
from made_results import result

from workbench.tune.answer.candidates import Interval, candidates_of, gain, pareto_front, ranked
from workbench.tune.goal import OBJECTIVES, Goal

GOAL = Goal(("goodput",), {"gap_p99_ms": 200})


def test_plays_of_one_setting_stand_together_whatever_the_order_of_its_knobs():
    results = [
        result(2, {"budget": 64}, 1.0, gap=50.0),
        result(0, {"budget": 256, "chunk": 64}, 2.0, gap=120.0),
        result(1, {"chunk": 64, "budget": 256}, 4.0, gap=180.0, seed=8),
        result(3, {"budget": 512}, state="failed", objectives=()),
    ]
    first, second = candidates_of(results)
    assert (first.name, len(first.plays), second.name) == ("budget 256 chunk 64", 2, "budget 64")
    assert first.objectives == (3.0,)
    assert first.figures["gap_p99_ms"] == 150.0
    assert first.excess["gap_p99_ms"] == pytest.approx(-0.1), "the play that did worst"
    assert first.engine_s == 4.0


def test_the_interval_is_students_t():
    # mean 2, s = 1, n = 3: t(0.975, 2) = 4.3027, so 2 +- 4.3027 / sqrt(3)
    found = Interval.of([1.0, 2.0, 3.0])
    half = 4.302653 / math.sqrt(3)
    assert (found.low, found.high) == (pytest.approx(2 - half, abs=1e-5), pytest.approx(2 + half, abs=1e-5))
    assert found.words == "2 (95 % interval -0.484 to 4.48 of 3 plays)"
    assert Interval.of([2.5]).words == "2.5 (one play)"
    with pytest.raises(ValueError, match="no values"):
        Interval.of([])


def test_one_play_that_breaks_a_limit_puts_a_setting_out():
    results = [
        result(0, {"budget": 64}, 1.0),
        result(1, {"budget": 256}, 3.0),
        result(2, {"budget": 256}, 3.0, gap=201.0, seed=8),
        result(3, {"budget": 128}, 2.0),
        result(4, {"budget": 512}, 9.0, state="stopped", gap=500.0),
    ]
    candidates = candidates_of(results)
    assert [one.name for one in ranked(candidates, GOAL)] == ["budget 128", "budget 64"]
    assert (candidates[1].met, len(candidates[1].plays)) == (1, 2)
    assert candidates[3].objectives == ()


def test_equals_are_told_apart_by_the_next_objective_and_then_by_the_room_that_is_left():
    goal = Goal(("goodput", "gap_p99"), {"gap_p99_ms": 200})
    results = [
        result(0, {"budget": 64}, objectives=(2.0, 90.0), slack=0.1),
        result(1, {"budget": 128}, objectives=(2.0 + 1e-13, 90.0), slack=0.4),
        result(2, {"budget": 256}, objectives=(2.0, 80.0), slack=0.0),
        result(3, {"budget": 512}, objectives=(1.0, 10.0), slack=0.9),
    ]
    order = [one.point.hot["budget"] for one in ranked(candidates_of(results), goal)]
    assert order == [256, 128, 64, 512]


def test_a_gain_is_positive_in_the_direction_of_the_objective():
    slow, fast = candidates_of([result(0, {"budget": 1}, 4.0), result(1, {"budget": 2}, 5.0)])
    assert gain(fast, slow, OBJECTIVES["goodput"]) == 0.25
    assert gain(fast, slow, OBJECTIVES["long_ttft"]) == -0.25


def test_the_front_holds_what_no_other_beats_in_all_three():
    def at(number, ttft, gap, rate):
        return result(number, {"budget": number}, gap=gap, ttft_p99_s=ttft, tokens_per_s=rate)

    results = [
        at(1, 1.0, 300.0, 50.0),  # the shortest TTFT, though it breaks the limit
        at(2, 2.0, 100.0, 50.0),
        at(3, 2.0, 100.0, 60.0),  # beats 2 in the rate, is its equal else
        at(4, 3.0, 110.0, 60.0),  # beaten by 3
        at(5, 9.0, 10.0, 10.0),  # the shortest gaps
    ]
    assert [one.point.hot["budget"] for one in pareto_front(candidates_of(results), GOAL)] == [5, 3, 1]


def test_the_front_is_over_the_long_prompts_ttft_and_the_gap_that_has_a_limit():
    goal = Goal(("goodput",), {"gap_max_ms": 900, "gap_p99_ms.chat": 200})
    one = result(0, {"budget": 1}, long_ttft_s=8.0, gap_max_ms=800.0, ttft_p99_s=1.0)
    other = result(1, {"budget": 2}, long_ttft_s=7.0, gap_max_ms=850.0, ttft_p99_s=1.0)
    assert [two.point.hot["budget"] for two in pareto_front(candidates_of([other, one]), goal)] == [1, 2]
