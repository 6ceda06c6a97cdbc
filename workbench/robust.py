"""Least squares that a few disturbed steps do not bend: weights after Huber, for reweighting until they settle."""

from __future__ import annotations

import numpy as np

from workbench.architecture import Floats

ROUNDS = 20  # of the reweighting; it settles in a few
_HUBER = 1.345  # residuals beyond so many standard deviations count less; 95 % efficient on normal errors (Huber 1981)
_NORMAL = 1.4826  # from the median absolute deviation to the standard deviation of a normal distribution
_EXACT = 1e-9


def huber_weights(residual: Floats) -> Floats | None:
    """How much each residual counts in the next round, 1 for those that are usual.

    Args:
        residual: relative errors of the fit so far.

    Returns:
        None where the fit is exact, and no further round is needed.
    """
    spread = _NORMAL * float(np.median(np.abs(residual)))
    if spread < _EXACT:
        return None
    return np.asarray(np.minimum(1, _HUBER * spread / np.maximum(np.abs(residual), 1e-12)))
