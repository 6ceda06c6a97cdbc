"""The three answers, by figures made by hand."""

import math

import numpy as np
from scipy import stats

from workbench.tune.compare.bootstrap import Estimate
from workbench.tune.compare.measures import MEASURES
from workbench.tune.compare.verdict import decide, needed

GAP, RATE = MEASURES["gap_p99"], MEASURES["throughput"]


def estimate(ratio, low, high, se=0.02, pairs=10):
    return Estimate(ratio, low, high, se, pairs, 0.95)


def test_a_smaller_gap_is_better():
    verdict = decide(estimate(0.88, 0.84, 0.92), GAP, 0.05, 10)
    assert verdict.kind == "A better"
    assert verdict.words == "A better by 12.0 % ± 4.0 % (gap P99 lower) (10 rounds, 95 % interval)"
    assert verdict.clear


def test_a_larger_throughput_is_better_and_the_ratio_is_the_better_ones():
    verdict = decide(estimate(0.8, 0.75, 0.85), RATE, 0.05, 10)
    assert verdict.kind == "B better"
    assert "by 25.0 % ± 7.8 % (prompt and output throughput higher)" in verdict.words, (
        "1/0.8, and half of 1/0.75-1/0.85"
    )


def test_an_interval_that_comes_near_to_no_difference_is_said_by_its_ends():
    # exp(log 1.106 -+ 0.1): 11 % +- 11 % would be read as "perhaps none"
    verdict = decide(estimate(1.106, 1.0007, 1.2223), RATE, 0.05, 7)
    assert verdict.kind == "A better"
    assert "A better by 10.6 % (0.1 % to 22.2 %; prompt and output throughput higher)" in verdict.words
    verdict = decide(estimate(1 / 1.106, 0.82, 0.999), GAP, 0.05, 7)
    assert "A better by 9.6 % (0.1 % to 18.0 %; gap P99 lower)" in verdict.words


def test_large_differences_are_factors():
    words = decide(estimate(0.2, 0.1, 0.4), GAP, 0.05, 10).words
    assert "A better by a factor of 5 (2.5 to 10; gap P99 lower)" in words


def test_no_difference_is_said_only_where_one_worth_knowing_is_ruled_out():
    # t(0.95, 9) = 1.833: 0.01 + 1.833 * 0.02 = 0.0467 < log 1.05 = 0.0488, and with 0.022 it is 0.0503
    sure, unsure = (decide(estimate(math.exp(0.01), 0.96, 1.06, se), GAP, 0.05, 10) for se in (0.02, 0.022))
    assert sure.kind == "no difference shown"
    assert "-2.6 % to +4.8 % beside B's (10 rounds, 90 % interval); one of 5 % is ruled out" in sure.words
    assert unsure.kind == "needs more rounds"
    assert not unsure.clear


def test_the_rounds_that_are_needed_find_the_difference_four_times_of_five():
    # By statsmodels' TTestPower().solve_power(log(1 + resolve) / spread, power=0.8, alpha=0.05), rounded up.
    assert [needed(*one) for one in ((0.05, 0.05), (0.12, 0.05), (0.03, 0.1), (0.001, 0.05))] == [11, 50, 4, 4]
    rng = np.random.default_rng(8)
    drawn = rng.normal(math.log(1.05), 0.05, (20_000, 11))
    t = drawn.mean(axis=1) / (drawn.std(axis=1, ddof=1) / math.sqrt(11))
    assert (t > stats.t.ppf(0.975, 10)).mean() >= 0.8
    verdict = decide(estimate(1.03, 0.95, 1.1, se=0.05, pairs=6), GAP, 0.05, 10)
    assert verdict.more == needed(0.05 * math.sqrt(6), 0.05) - 6
    assert f"needs about {verdict.more} more rounds to tell" in verdict.words
    one = decide(estimate(1.03, 0.95, 1.1, se=0.05 / math.sqrt(10), pairs=10), GAP, 0.05, 10)
    assert one.words.startswith("needs about 1 more round to tell a difference of 5 %: so far "), "11 are needed"


def test_before_the_first_look_nothing_is_said():
    assert decide(None, GAP, 0.05, 0).more == 4
    assert decide(None, GAP, 0.05, 1).more == 3
    verdict = decide(estimate(0.1, 0.09, 0.11, pairs=3), GAP, 0.05, 10)
    assert (verdict.kind, verdict.more) == ("needs more rounds", 1)
    assert verdict.words == "needs 1 more round before anything can be said"


def test_rounds_that_say_exactly_the_same_need_no_more():
    assert decide(estimate(1.0, 1.0, 1.0, se=0.0, pairs=4), GAP, 0.05, 4).kind == "no difference shown"
    assert decide(estimate(1.01, 1.01, 1.01, se=0.0, pairs=4), GAP, 0.05, 4).kind == "B better"
