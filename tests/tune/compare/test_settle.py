"""Warm-up: MSER-5 against its definition, and what is cut off where."""

import numpy as np
import pytest

from workbench.tune.compare.settle import is_steady, is_warm, lead_in_s, mser5, paces
from workbench.workload.scenario import load_scenario


def by_definition(values):
    """Cut for cut, as White (1997) writes it, on means of five."""
    means = [sum(values[i : i + 5]) / 5 for i in range(0, len(values) // 5 * 5, 5)]
    m, best = len(means), None
    for d in range(m - 5):
        rest = means[d:]
        mean = sum(rest) / len(rest)
        error = sum((one - mean) ** 2 for one in rest) / len(rest) ** 2
        if best is None or error < best[0]:
            best = (error, d)
    return best[1] * 5 if best[1] <= m // 2 else None


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_rule_of_the_paper(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(1, 0.2, 203) + 3 * np.exp(-np.arange(203) / rng.uniform(2, 60))
    assert mser5(values) == by_definition(values.tolist())


def test_a_slow_beginning_is_cut_off_and_no_more():
    values = [9.0] * 15 + [1.0, 1.1] * 50
    assert mser5(values) == 15


def test_what_does_not_settle_has_no_cut():
    assert mser5([5.0] * 80 + [1.0, 1.1] * 20) is None, "the change comes after the middle"


def test_a_short_series_says_nothing():
    assert mser5([1.0, 2.0] * 24) is None


def test_a_constant_series_is_settled_from_the_first():
    assert mser5([2.0] * 60) == 0


def test_steps_are_held_against_their_like_over_all_plays(made_trace):
    slow, fast = paces([made_trace([0.04] * 30), made_trace([0.02] * 50)])
    assert slow == pytest.approx(np.log(2)), "the median of all 80 is that of the fast play"
    assert fast == pytest.approx(0)


def test_an_engine_is_warm_when_nothing_of_the_last_play_is_cut_off(made_trace):
    rng = np.random.default_rng(4)
    levels = ([0.09] * 40 + [0.03] * 60, [0.03] * 100)
    cold, warm = (made_trace(np.array(some) * rng.uniform(0.98, 1.02, 100)) for some in levels)
    assert not is_warm([cold])
    assert is_warm([cold, warm]), "the first 40 steps are the warm-up"
    assert is_warm([warm, warm])
    assert not is_warm([warm, cold]), "the second begins slowly"


def test_the_lead_in_ends_when_gaps_are_as_they_stay(made_trace):
    assert lead_in_s(made_trace([0.3] * 10 + [0.1, 0.11] * 60, streams=1)) == pytest.approx(
        0.1 + 11 * 0.3 - 0.2, abs=0.01
    )
    assert lead_in_s(made_trace([0.1, 0.11] * 60)) == 0
    assert lead_in_s(made_trace([0.1] * 80 + [0.4, 0.5] * 20)) is None


def test_only_loads_that_go_on_alike_are_cut():
    assert is_steady(load_scenario("interactive"))
    assert not is_steady(load_scenario("chat_and_long")), "a burst is played whole"
