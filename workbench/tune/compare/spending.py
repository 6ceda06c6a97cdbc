"""How sure a look at the rounds so far must be, so that all looks together err no more often than was promised.

The error is spent as the rounds come in (Lan and DeMets 1983, Biometrika 70), by the power family: after a share t of
the rounds, alpha * t ** 2 of it (Kim and DeMets 1987, Biometrika 74). A look at four rounds has three degrees of
freedom, where normal bounds are far too narrow: the bounds are those of Student's t over the same rounds, found by
following Gaussian paths that are drawn from a fixed seed. Who stops early because nothing is to be seen, or because
somebody has lost patience, spends less.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import stats

FIRST_LOOK = 4  # rounds
_POWER = 2.0
_PATHS = 200_000
_SEED = 19_830_101


@lru_cache(maxsize=32)
def looks(rounds: int, alpha: float = 0.05, first: int = FIRST_LOOK) -> dict[int, float]:
    """The nominal two-sided error of each look: by the number of rounds, from the first look to the last.

    Args:
        rounds: most of them.
        alpha: chance that any look finds a difference where there is none.
        first: rounds before the first look; a look comes after each round from then on.

    Returns:
        Empty where there are fewer than two rounds.
    """
    if rounds < 2:
        return {}
    first = min(first, rounds)
    rng = np.random.default_rng(_SEED)
    total, squares = np.zeros(_PATHS), np.zeros(_PATHS)
    going = np.ones(_PATHS, dtype=bool)
    spent, nominal = 0.0, {}
    for n in range(1, rounds + 1):
        drawn = rng.standard_normal(_PATHS)
        total += drawn
        squares += drawn**2
        if n < first:
            continue
        mean = total / n
        variance = (squares - n * mean**2) / (n - 1)
        t = np.abs(mean) / np.sqrt(variance / n)
        due = alpha * (n / rounds) ** _POWER - spent
        bound = float(np.quantile(t[going], 1 - due * _PATHS / going.sum()))
        going &= t <= bound
        spent = 1 - going.mean()
        nominal[n] = float(2 * stats.t.sf(bound, n - 1))
    return nominal


def at_look(rounds: int, planned: int, alpha: float = 0.05) -> float:
    """The nominal two-sided error after so many of the planned rounds.

    Args:
        rounds: that there are; one that was missed counts as if it had not been.
        planned: most of them.
        alpha: as in :func:`looks`.

    Returns:
        0 before the first look.
    """
    return looks(planned, alpha).get(min(rounds, planned), 0.0)
