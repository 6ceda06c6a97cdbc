"""Looks at the rounds so far: that all together err no more often than promised."""

import numpy as np
import pytest
from scipy import stats

from workbench.tune.compare.spending import at_look, looks


@pytest.mark.parametrize(("rounds", "alpha"), [(8, 0.05), (20, 0.05), (20, 0.02)])
def test_all_looks_together_err_as_often_as_promised(rounds, alpha):
    nominal = looks(rounds, alpha)
    assert list(nominal) == list(range(4, rounds + 1))
    drawn = np.random.default_rng(99).normal(0.0, 3.0, (60_000, rounds))  # other paths than those it was made with
    found = np.zeros(len(drawn), dtype=bool)
    for n, p in nominal.items():
        t = np.abs(drawn[:, :n].mean(axis=1)) / (drawn[:, :n].std(axis=1, ddof=1) / np.sqrt(n))
        found |= t > stats.t.ppf(1 - p / 2, n - 1)
    assert found.mean() == pytest.approx(alpha, abs=0.004)


def test_little_is_spent_early():
    nominal = looks(20)
    assert nominal[4] == pytest.approx(0.05 * (4 / 20) ** 2, rel=0.12), "the first look spends its share alone"
    assert all(p < 0.05 for p in nominal.values())


def test_a_single_look_is_a_plain_test():
    assert looks(3) == {3: pytest.approx(0.05, rel=0.05)}
    assert looks(1) == {}


def test_a_look_that_is_not_due_says_nothing():
    assert at_look(3, 20) == 0
    assert at_look(25, 20) == looks(20)[20]
