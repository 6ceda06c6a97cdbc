"""Intervals: against what is known in closed form."""

import math

import numpy as np
import pytest
from scipy import stats

from workbench.tune.compare.bootstrap import block_length, of_groups, of_pairs, stationary, within


def test_blocks_run_on_and_wrap_around():
    drawn = stationary(10, 5.0, np.random.default_rng(1), 4000)
    assert drawn.shape == (4000, 10)
    assert drawn.min() == 0
    assert drawn.max() == 9
    goes_on = (np.diff(drawn, axis=1) % 10 == 1).mean()
    assert goes_on == pytest.approx(0.8 + 0.2 * 0.1, abs=0.01), (
        "4 of 5 go on, and some new blocks begin there by chance"
    )
    assert np.bincount(drawn.ravel()) / 4000 == pytest.approx(np.ones(10), abs=0.06)


def test_without_blocks_every_place_is_drawn_for_itself():
    drawn = stationary(50, 1.0, np.random.default_rng(2), 2000)
    assert (np.diff(drawn, axis=1) % 50 == 1).mean() == pytest.approx(1 / 50, abs=0.003)


def test_blocks_are_as_long_as_the_series_hangs_together():
    rng = np.random.default_rng(3)
    white = [block_length(rng.normal(size=400)) for _ in range(50)]
    linked = []
    for _ in range(50):
        x = np.zeros(400)
        for i in range(1, 400):
            x[i] = 0.7 * x[i - 1] + rng.normal()
        linked.append(block_length(x))
    assert np.median(white) < 2
    # By Patton, Politis and White (2009) for a first-order autoregression: G and D in closed form.
    rho, n = 0.7, 400
    g, spectrum = 2 * rho / (1 - rho) ** 2, (1 + rho) / (1 - rho)
    best = (2 * g**2 / (2 * spectrum**2)) ** (1 / 3) * n ** (1 / 3)
    assert np.median(linked) == pytest.approx(best, rel=0.3)


def test_a_constant_series_has_no_blocks():
    assert block_length(np.ones(30)) == 1


def test_the_interval_of_a_mean_is_students():
    rng = np.random.default_rng(5)
    b = rng.uniform(50, 150, 7)
    a = b * np.exp(rng.normal(0.1, 0.05, 7))
    found = of_pairs(a, b, alpha=0.05)
    logs = np.log(a / b)
    known = stats.t.interval(0.95, 6, logs.mean(), stats.sem(logs))
    assert found.ratio == pytest.approx(math.exp(logs.mean()))
    assert (math.log(found.low), math.log(found.high)) == pytest.approx(known, abs=0.004)
    assert found.spread == pytest.approx(logs.std(ddof=1), rel=0.04)
    assert (found.inverse.low, found.inverse.high) == pytest.approx((1 / found.high, 1 / found.low))


def test_what_was_not_measured_in_both_is_left_out():
    a, b = np.array([2.0, np.nan, 4.0, 6.0]), np.array([1.0, 5.0, 2.0, np.nan])
    found = of_pairs(a, b, alpha=0.05)
    assert (found.pairs, found.ratio, found.se) == (2, pytest.approx(2.0), pytest.approx(0.0, abs=1e-12))
    assert found.differs, "both pairs say exactly the same"
    assert of_pairs(a[:2], b[:2], alpha=0.05) is None


def test_counts_of_nothing_are_compared_by_their_sums():
    a, b = np.array([0.0, 2.0, 1.0, 3.0]), np.array([1.0, 1.0, 1.0, 1.0])
    assert of_pairs(a, b, alpha=0.05).pairs == 3, "without counting, a zero has no logarithm"
    found = of_pairs(a, b, alpha=0.05, counted=True)
    assert (found.pairs, found.ratio) == (4, pytest.approx(1.5))
    assert not found.differs
    assert of_pairs(np.zeros(4), b, alpha=0.05, counted=True) is None


def test_runs_that_are_not_in_pairs_are_compared_by_welch():
    a, b = np.array([110.0, 115.0, 121.0]), np.array([100.0, 104.0, 99.0, 101.0])
    found = of_groups(a, b, alpha=0.05)
    known = stats.ttest_ind(np.log(a), np.log(b), equal_var=False).confidence_interval(0.95)
    assert (math.log(found.low), math.log(found.high)) == pytest.approx((known.low, known.high))
    assert of_groups(a, b[:1], alpha=0.05) is None


def test_within_runs_the_interval_of_a_median_covers_it():
    hit = 0
    for seed in range(30):
        rng = np.random.default_rng([seed, 6])
        sides = []
        for level in (1.3, 1.0):
            x = np.zeros(400)
            for i in range(1, 400):
                x[i] = 0.6 * x[i - 1] + rng.normal(0, 0.1)
            sides.append(level * np.exp(x))
        found = within(*sides, lambda drawn: np.median(drawn, axis=1), alpha=0.05)
        hit += found.low <= 1.3 <= found.high
    assert hit >= 25, "95 % of 30 are 28; blocks of one value would cover about 21"


def test_few_values_say_nothing_within_a_run():
    assert within(np.ones(19), np.ones(50), lambda drawn: drawn.mean(axis=1), alpha=0.05) is None
