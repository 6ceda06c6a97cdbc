"""Which limit binds and by how much, on made-up results and on a made-up run."""

from __future__ import annotations

import pytest
from made_results import result

from workbench.tune.answer.candidates import candidates_of
from workbench.tune.answer.why import bindings, nothing_fits, resource
from workbench.tune.goal import Goal

GOAL = Goal(("goodput",), {"gap_p99_ms": 200, "ttft_p99_s": 2.0})


def both(number, budget, goodput, gap, ttft, **more):
    over = {"gap_p99_ms": gap / 200 - 1, "ttft_p99_s": ttft / 2 - 1, "failed requests": 0.0}
    return result(number, {"budget": budget}, goodput, gap=gap, excess=over, **more)


def test_a_limit_binds_where_a_better_setting_breaks_it():
    candidates = candidates_of(
        [
            both(0, 64, 2.0, 190.0, 1.0),
            both(1, 256, 2.5, 250.0, 0.9),
            both(2, 512, 3.0, 300.0, 0.8),
            both(3, 32, 1.0, 90.0, 3.0),
        ]
    )
    first, second, failed = bindings(candidates, candidates[0], GOAL)
    assert (first.constraint, first.beyond, first.gain, first.misses) == ("gap_p99_ms", "budget 512", 0.5, 0.5)
    assert first.measured == pytest.approx(190.0)
    assert first.words == (
        "gap_p99_ms is 190 of 200 allowed (5% below); it binds: budget 512 would be 50.0% better and misses it by 50%"
    )
    assert (second.constraint, second.binds, second.words) == (
        "ttft_p99_s", False, "ttft_p99_s is 1 of 2 allowed (50% below)")  # fmt: skip
    assert (failed.constraint, failed.words) == ("failed requests", "failed requests is 0%")


def test_an_empty_set_names_the_limit_that_binds_and_the_nearest_setting():
    results = [both(0, 64, 1.0, 240.0, 1.0), both(1, 256, 2.0, 400.0, 3.0)]
    found = nothing_fits(candidates_of(results), results, GOAL)
    assert (found.constraint, found.nearest) == ("gap_p99_ms", "budget 64")
    assert found.by == pytest.approx(0.2)
    assert found.words == (
        "none of 2 settings is within the limits: gap_p99_ms binds, with 240 where 200 is allowed (20% above), "
        "at the nearest, budget 64"
    )


def test_limits_that_clash_are_said_to():
    results = [both(0, 64, 1.0, 100.0, 2.6), both(1, 256, 2.0, 220.0, 1.0)]
    found = nothing_fits(candidates_of(results), results, GOAL)
    assert (found.constraint, found.nearest) == ("", "budget 256")
    assert found.words == (
        "none of 2 settings is within the limits, though each limit is met by one of them (gap_p99_ms by budget 64, "
        "ttft_p99_s by budget 256): they clash; budget 256 comes nearest and misses gap_p99_ms by 10%"
    )


def test_a_play_that_was_stopped_has_not_come_to_its_worst():
    results = [both(0, 64, 1.0, 210.0, 1.0, state="stopped"), both(1, 256, 2.0, 260.0, 1.0)]
    assert nothing_fits(candidates_of(results), results, GOAL).nearest == "budget 256"
    assert nothing_fits(candidates_of(results[:1]), results[:1], GOAL).nearest == "budget 64"


def test_where_all_failed_the_first_error_is_passed_on():
    results = [result(0, {"budget": 64}, state="failed", objectives=(), error="engine: it died")]
    assert nothing_fits([], results, GOAL).words == "the only trial was not measured; the first said: engine: it died"
    assert nothing_fits([], [], GOAL) is None
    cut = [result(0, {"budget": 64}, state="interrupted", objectives=(), error="the study was stopped")]
    assert nothing_fits([], cut, GOAL) is None, "nothing is known of it"
    assert nothing_fits([], [*cut, *results], GOAL).words.startswith("the only trial was not measured")


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"busy": 0.9, "prefill_time": 0.62}, "prefill: 62% of the engine's time"),
        ({"busy": 0.9, "prefill_time": 0.2}, "decode: 80% of the engine's time"),
        ({"busy": 0.2, "prefill_time": 0.9}, "waiting for requests: steps ran for 20% of the time"),
        ({"busy": 0.9, "kv_max": 0.97, "waiting_mean": 3.0}, "KV pool full"),
        ({"busy": 0.9, "preemptions": 2.0}, "KV pool full"),
        ({"busy": 0.9, "running_max": 8.0, "at_cap": 0.5}, "running cap of 8"),
    ],
)
def test_what_the_engine_is_busy_with(facts, words):
    assert resource(facts, 8) == words
