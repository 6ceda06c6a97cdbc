"""Intervals by the block bootstrap: of a ratio over rounds in pairs, and of single figures within one run.

Blocks have random lengths and wrap around (stationary bootstrap: Politis and Romano 1994, J. Amer. Statist. Assoc. 89);
their mean length is chosen from the autocorrelation (Politis and White 2004, corrected by Patton, Politis and White
2009, Econometric Reviews 28). Rounds are drawn whole, with all their gaps: what is drawn with replacement is the outer
level only, which comes closest to how such data vary (Davison and Hinkley 1997, Bootstrap Methods, section 3.8).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Floats = NDArray[np.float64]

_DRAWS = 2000
_LEAST_FOR_BLOCKS = 8  # pairs; fewer do not tell how they hang together
_SEED = 20_040_301
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Estimate:
    """A ratio of two settings with its interval; how often the first has the second's figure.

    Attributes:
        ratio: geometric mean of the pairs' ratios, or the ratio of the sums.
        low: end of the interval.
        high: end of the interval.
        se: standard error of the ratio's natural logarithm.
        pairs: that it comes from.
        level: of the interval, such as 0.95.
        block: mean length of a block, in pairs.
    """

    ratio: float
    low: float
    high: float
    se: float
    pairs: int
    level: float
    block: float = 1.0

    @property
    def differs(self) -> bool:
        """Whether the interval leaves out a ratio of 1, by more than rounding."""
        return abs(self.log) > _ROUNDING and not self.low <= 1.0 <= self.high

    @property
    def is_exact(self) -> bool:
        """Whether chance has no part in it: see :mod:`workbench.tune.compare.exact`."""
        return self.level == 1.0

    @property
    def log(self) -> float:
        """Natural logarithm of the ratio."""
        return math.log(self.ratio)

    @property
    def spread(self) -> float:
        """Standard deviation of one pair's log ratio."""
        return self.se * math.sqrt(self.pairs)

    @property
    def inverse(self) -> Estimate:
        """The same of the second setting to the first."""
        return Estimate(1 / self.ratio, 1 / self.high, 1 / self.low, self.se, self.pairs, self.level, self.block)


def of_pairs(a: Floats, b: Floats, *, alpha: float, counted: bool = False) -> Estimate | None:
    """The ratio a / b over pairs of rounds.

    The logarithms of the pairs' ratios are resampled in blocks of pairs; the interval is their mean, plus and minus
    Student's t times the bootstrap's standard error, which is made larger by sqrt(n / (n - block)), since resampling
    shows that much less than the data vary (Hesterberg 2015, The American Statistician 69, section 3).

    Args:
        a: of shape (pairs,), in the order of time; NaN where it was not measured.
        b: likewise, of the same pairs.
        alpha: chance that the interval misses.
        counted: the figures may be 0: take the ratio of the sums.

    Returns:
        None where fewer than two pairs have both figures, or (with ``counted``) one of the sums is 0.
    """
    good = np.isfinite(a) & np.isfinite(b)
    good &= ((a >= 0) & (b >= 0)) if counted else ((a > 0) & (b > 0))
    a, b = a[good], b[good]
    n = len(a)
    if n < 2 or not (a.sum() and b.sum()):
        return None
    if counted and not (np.all(a > 0) and np.all(b > 0)):
        ratio = math.log(a.sum() / b.sum())
        series = (a / a.mean() - b / b.mean()) / 2  # what each pair adds to the logarithm, in first order
    else:
        counted, series = False, np.log(a / b)
        ratio = float(series.mean())
    block = block_length(series) if n >= _LEAST_FOR_BLOCKS else 1.0
    drawn = stationary(n, block, np.random.default_rng(_SEED), _DRAWS)
    if counted:
        with np.errstate(divide="ignore", invalid="ignore"):
            many = np.log(a[drawn].sum(axis=1) / b[drawn].sum(axis=1))
        many = many[np.isfinite(many)]
    else:
        many = series[drawn].mean(axis=1)
    se = float(many.std()) * math.sqrt(n / (n - block)) if len(many) else math.inf
    half = se * float(stats.t.ppf(1 - alpha / 2, max(1.0, n / block - 1)))
    return Estimate(math.exp(ratio), math.exp(ratio - half), _exp(ratio + half), se, n, 1 - alpha, block)


def within(
    a: Floats, b: Floats, figure: Callable[[Floats], Floats], *, alpha: float, log_scale: bool = True
) -> Estimate | None:
    """The ratio of a figure of two series, each resampled in blocks for itself: what one run of each can say.

    Percentile interval of the logarithm (Efron and Tibshirani 1993, chapter 13).

    Args:
        a: of shape (values,), in the order of time.
        b: likewise; lengths may differ.
        figure: from values of shape (draws, values) to shape (draws,).
        alpha: chance that the interval misses.
        log_scale: choose the length of blocks by the values' logarithms.

    Returns:
        None where a series has fewer than 20 values, or a figure is 0.
    """
    rng, ends, logs = np.random.default_rng(_SEED), [], []
    for values in (a, b):
        if len(values) < 20:
            return None
        series = np.log(np.maximum(values, 1e-9)) if log_scale else values
        draws = max(200, min(_DRAWS, 20_000_000 // len(values)))
        block = block_length(series)
        many = figure(values[stationary(len(values), block, rng, draws)])
        point = float(figure(values[None, :])[0])
        if point <= 0:
            return None
        logs.append(math.log(point))
        some = rng.choice(many[many > 0], _DRAWS)
        ends.append(np.log(some))
    apart = ends[0] - ends[1]
    low, high = np.quantile(apart, (alpha / 2, 1 - alpha / 2))
    ratio = logs[0] - logs[1]
    return Estimate(math.exp(ratio), math.exp(low), math.exp(high), float(apart.std()), 1, 1 - alpha)


def of_groups(a: Floats, b: Floats, *, alpha: float, counted: bool = False) -> Estimate | None:
    """The ratio a / b of runs that are not in pairs: Welch's t on the logarithms (Welch 1947, Biometrika 34).

    Args:
        a: of shape (runs,); NaN where it was not measured.
        b: likewise; their numbers may differ.
        alpha: chance that the interval misses.
        counted: the figures may be 0: nothing is said where one is.

    Returns:
        None where a side has fewer than two figures above 0, or (with ``counted``) any that is 0.
    """
    sides = [side[np.isfinite(side)] for side in (a, b)]
    if counted and any((side <= 0).any() for side in sides):
        return None
    logs = [np.log(side[side > 0]) for side in sides]
    if any(len(one) < 2 for one in logs):
        return None
    parts = [float(one.var(ddof=1)) / len(one) for one in logs]
    ratio, se = float(logs[0].mean() - logs[1].mean()), math.sqrt(sum(parts))
    spread = sum(part**2 / (len(one) - 1) for part, one in zip(parts, logs, strict=True))
    half = se * float(stats.t.ppf(1 - alpha / 2, se**4 / spread)) if spread else 0.0
    pairs = min(map(len, logs))
    return Estimate(math.exp(ratio), math.exp(ratio - half), _exp(ratio + half), se, pairs, 1 - alpha)


def stationary(n: int, block: float, rng: np.random.Generator, draws: int) -> NDArray[np.int64]:
    """Places of ``draws`` resamples of a series of ``n``, of shape (draws, n).

    Args:
        n: values in the series.
        block: mean length of a block; lengths are geometric, and blocks wrap around the end.
        rng: draws them.
        draws: resamples.
    """
    begins = rng.random((draws, n)) < 1 / max(1.0, block)
    begins[:, 0] = True
    fresh = rng.integers(n, size=(draws, n))
    place = np.arange(n)
    last = np.maximum.accumulate(np.where(begins, place, 0), axis=1)  # where the block of each place began
    places: NDArray[np.int64] = (np.take_along_axis(fresh, last, axis=1) + place - last) % n
    return places


def block_length(series: Floats) -> float:
    """Mean length of a block that suits the series' autocorrelation: 1 where it has none, at most a third of it."""
    n = len(series)
    x = series - series.mean()
    variance = float(x @ x) / n
    if variance <= 0:
        return 1.0
    run = max(5, math.ceil(math.log10(n)))
    most = min(n - 1, math.ceil(math.sqrt(n)) + run)
    covariance = np.array([float(x[: n - k] @ x[k:]) / n for k in range(most + 1)])
    inside = np.abs(covariance[1:] / variance) < 2 * math.sqrt(math.log10(n) / n)
    # The first lag after which `run` in a row are insignificant; lags beyond those looked at count as such.
    padded = np.concatenate((inside, np.ones(run, dtype=bool)))
    m = next((k for k in range(len(inside) + 1) if padded[k : k + run].all()), len(inside))
    if m == 0:
        return 1.0
    m = min(2 * m, most)
    lags = np.arange(1, m + 1)
    window = np.minimum(1.0, 2 * (1 - lags / m))  # flat top
    g = 2 * float((window * lags * covariance[1 : m + 1]).sum())
    spectrum = variance + 2 * float((window * covariance[1 : m + 1]).sum())
    if spectrum <= 0:
        return 1.0
    length = (2 * g**2 / (2 * spectrum**2)) ** (1 / 3) * n ** (1 / 3)
    return float(min(max(1.0, length), math.ceil(min(3 * math.sqrt(n), n / 3))))


def _exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf
