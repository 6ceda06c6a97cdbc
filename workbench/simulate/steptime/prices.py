"""What a step's time is a sum of, and the prices that make the sum right: non-negative, robust, per kind of step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from workbench.robust import ROUNDS, huber_weights
from workbench.simulate.steptime.base import StepShape

Floats = NDArray[np.float64]

# In the order of the prices. "first" is a price on top for the first few prompt tokens of a step: matrix products of
# few rows are slower a row.
FEATURES = ("step", "prefill_token", "prefill_pair", "decode", "decode_context", "prefill", "first")
FIRST = 64
_WORDS = ("", "prompt tokens", "attended pairs", "decodes", "tokens of context", "prompts", "")
_USED = {
    "decode": ("step", "decode", "decode_context"),
    "mixed": FEATURES,
    "prefill": ("step", "prefill_token", "prefill_pair", "prefill", "first"),
}
QUANTILES = (0.005, *(place / 20 for place in range(1, 20)), 0.995)
_ROOM = 1.25  # a step this much beyond all that were seen still counts as seen
_TRUST = 4.0  # a foretold time further off than that says nothing of how precise the step was


def features(step: StepShape) -> tuple[float, ...]:
    """The numbers of :data:`FEATURES` for a step."""
    tokens = step.prefill_tokens
    first = tokens if tokens < FIRST else FIRST
    return (1.0, tokens, step.prefill_pairs, step.decodes, step.decode_context, step.prefills, first)


@dataclass(frozen=True, slots=True)
class Fit:
    """The prices of one kind of step.

    Attributes:
        prices: seconds for one of each of :data:`FEATURES`; none is negative.
        lowest: the smallest of each that was seen.
        highest: the largest.
        steps: measured steps behind it.
        median_pct: median error, %.
        p90_pct: 90th percentile of the error, %.
        held_out: whether those are of steps that the fit did not see.
        ratios: measured over foretold time of those steps, over the median of their group, at :data:`QUANTILES`: what
            steps of one run vary by. That a whole run is slower than another is no part of it.
    """

    prices: tuple[float, ...]
    lowest: tuple[float, ...]
    highest: tuple[float, ...]
    steps: int
    median_pct: float
    p90_pct: float
    held_out: bool
    ratios: tuple[float, ...]

    def outside(self, step: StepShape) -> str:
        """What of the step is beyond all that were seen, in words; empty where nothing is."""
        found = []
        for words, value, low, high in zip(_WORDS, features(step), self.lowest, self.highest, strict=True):
            if words and not low / _ROOM <= value <= high * _ROOM:
                found.append(f"{value:,.0f} {words} (measured: {low:,.0f} to {high:,.0f})")
        return ", ".join(found)


def fit_kind(kind: str, design: Floats, seconds: Floats, groups: NDArray[np.int64], least: int) -> Fit:
    """Fit one kind of step, and find its error on groups of steps that are left out in turn.

    Args:
        kind: which prices are free; see :data:`workbench.simulate.steptime.KINDS`.
        design: features by step.
        seconds: that each took.
        groups: of each step; a group is left out as one.
        least: steps that must be left to fit to.
    """
    foretold = np.full(len(seconds), np.nan)
    for name in np.unique(groups):
        held = groups == name
        if (~held).sum() >= least:
            foretold[held] = design[held] @ prices_of(kind, design[~held], seconds[~held])
    prices = prices_of(kind, design, seconds)
    sound = np.isfinite(foretold) & (foretold > 0)
    held_out = bool(sound.any())
    if not held_out:  # nearly all are in one group: the error on what was fitted is all there is
        foretold = design @ prices
        sound = foretold > 0
    ratio = seconds[sound] / foretold[sound]
    off = np.abs(1 / ratio - 1) * 100
    return Fit(
        prices=tuple(float(one) for one in prices),
        lowest=tuple(float(one) for one in design.min(axis=0)),
        highest=tuple(float(one) for one in design.max(axis=0)),
        steps=len(seconds),
        median_pct=float(np.median(off)),
        p90_pct=float(np.percentile(off, 90)),
        held_out=held_out,
        ratios=tuple(float(one) for one in np.quantile(_within(ratio, groups[sound], least), QUANTILES)),
    )


def _within(ratio: Floats, groups: NDArray[np.int64], least: int) -> Floats:
    """Ratios over the median of their group; groups of few steps keep theirs."""
    level = np.ones(len(ratio))
    for name in np.unique(groups):
        mine = groups == name
        if mine.sum() >= least:
            level[mine] = np.median(ratio[mine])
    return np.asarray(ratio / level)


def prices_of(kind: str, design: Floats, seconds: Floats) -> Floats:
    """Prices of 0 or more that make the relative errors small, so that long steps do not outweigh short ones.

    Non-negative least squares, reweighted after Huber, so that a few disturbed steps do not bend it. Errors are taken
    relative to the foretold time: relative to the measured one, steps that took too long would count too little.
    """
    used = np.array([name in _USED[kind] for name in FEATURES])
    scale = np.where(used, design, 0.0).max(axis=0)
    scale[scale == 0] = 1
    scaled = np.where(used, design, 0.0) / scale
    base, weight = seconds, np.ones(len(seconds))
    found = np.zeros(len(FEATURES))
    for _ in range(ROUNDS):
        root = np.sqrt(weight) / base
        found, _ = nnls(scaled * root[:, None], seconds * root)
        foretold = scaled @ found
        base = np.clip(foretold, seconds / _TRUST, seconds * _TRUST)
        reweighted = huber_weights((seconds - foretold) / base)
        if reweighted is None:
            break
        weight = reweighted
    return np.asarray(found / scale)
