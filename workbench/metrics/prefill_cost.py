"""What a prefill costs here: seconds for so many tokens, fitted to the step records of a run.

A step takes ``fixed + token*prefill tokens + pair*pairs + decode*decodes + context*tokens that the decodes look at``,
where pairs are those of causal attention. None of the five can be negative.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from workbench.architecture import pairs
from workbench.i18n import phrase
from workbench.metrics.gaps import Floats
from workbench.metrics.step_table import StepTable
from workbench.robust import ROUNDS, huber_weights
from workbench.trace import Trace

_STEPS = 4  # fewer prefill steps say nothing of how time goes with tokens


@dataclass(frozen=True, slots=True)
class PrefillCost:
    """Seconds of prefill; what a recompute after a preemption takes.

    Attributes:
        token_s: of each prompt token, s.
        pair_s: of each pair of tokens that attention multiplies, s.
        fixed_s: of a step, whatever is in it, s.
        source: where the numbers come from.
        error: median relative error of the fit over the prefill steps; None where nothing was fitted.
        steps: prefill steps behind it.
        max_tokens: longest prompt, in tokens with context, that was measured; beyond it the numbers are extrapolated.
    """

    token_s: float
    pair_s: float
    fixed_s: float
    source: str
    error: float | None = None
    steps: int = 0
    max_tokens: int = 0

    def seconds(self, tokens: float, context: float = 0) -> float:
        """What these prompt tokens add to steps that run anyway, s."""
        return float(self.token_s * tokens + self.pair_s * pairs(tokens, context))


def prefill_cost(trace: Trace) -> PrefillCost | None:
    """Fit what prefill costs to the steps of a run.

    Least squares of the relative error, so that long steps do not outweigh short ones, with Huber's weights, so that
    a few disturbed steps do not bend it.

    Returns:
        None when there are fewer than four prefill steps, or none with a known time.
    """
    steps = StepTable.of(trace)
    design, known = _design(steps)
    known &= steps.seconds > 0
    prefills = known & (design[:, 1] > 0)
    if prefills.sum() < _STEPS:
        return None
    sizes = design[prefills, 1]
    if not (known & ~prefills).any() and sizes.max() < 2 * sizes.min():
        design[:, 0] = 0  # steps of one size cannot tell what goes with tokens from what goes with the step
    seconds = steps.seconds[known]
    weights = _fit(design[known], seconds)
    off = np.abs(design[prefills] @ weights / steps.seconds[prefills] - 1)
    of_prefill = steps.part_prefill & prefills[steps.part_step]
    reach = (steps.part_tokens + steps.part_context)[of_prefill]
    return PrefillCost(
        token_s=float(weights[1]),
        pair_s=float(weights[2]),
        fixed_s=float(weights[0]),
        source=phrase(
            "{label}, measured over {steps:,} prefill steps",
            label=phrase(str(trace.meta.get("label") or "origin not stated")),
            steps=int(prefills.sum()),
        ),
        error=float(np.median(off)),
        steps=int(prefills.sum()),
        max_tokens=int(reach.max()),
    )


def _design(steps: StepTable) -> tuple[Floats, np.ndarray]:
    """The five columns of the model for each step, and whether all parts of the step are on record."""
    count, step, prefill = len(steps.row), steps.part_step, steps.part_prefill
    tokens, context = steps.part_tokens, steps.part_context

    def total(values: Floats) -> Floats:
        return np.asarray(np.bincount(step, values, minlength=count))

    columns = (
        np.ones(count),
        total(np.where(prefill, tokens, 0)),
        total(np.where(prefill, pairs(tokens, context), 0)),
        total(np.where(prefill, 0, tokens)),
        total(np.where(prefill, 0, context)),
    )
    whole = total(tokens) == steps.prefill_tokens + steps.decode_tokens
    return np.stack(columns, axis=1), whole & np.isfinite(np.sum(columns, axis=0))


def _fit(design: Floats, seconds: Floats) -> Floats:
    """Coefficients of 0 or more that make the relative errors small, with outliers counting less."""
    from scipy.optimize import nnls  # here, since it takes half a second to import

    relative = design / seconds[:, None]
    scale = relative.max(axis=0)
    scale[scale == 0] = 1
    relative = relative / scale
    weight = np.ones(len(seconds))
    for _ in range(ROUNDS):
        root = np.sqrt(weight)
        found, _ = nnls(relative * root[:, None], root)
        reweighted = huber_weights(relative @ found - 1)
        if reweighted is None:
            break
        weight = reweighted
    return np.asarray(found / scale)
