"""Simulated runs side by side: the same load gives the same run each time, so their ratio has no chance in it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from workbench.i18n import marked
from workbench.run import RecordedRun
from workbench.tune.compare.bootstrap import Estimate, Floats

HOW = marked("simulated: the same each time")
MODELLED = marked(
    "the figures are exact for this load and this step-time model, whose error is in both; another seed may give others"
)


def is_exact(a: Sequence[RecordedRun], b: Sequence[RecordedRun]) -> bool:
    """Whether chance has no part in how two runs differ: one of each, simulated, of one scenario and seed.

    Blocks of gaps within a run would tell how other requests of its kind might fare. Where a percentile stands at the
    edge of a few huge gaps, as gap P99 does when 1 % of the gaps hold a whole prompt, they tell of nothing else.
    """
    if len(a) != 1 or len(b) != 1:
        return False
    one, other = a[0].meta, b[0].meta
    same = all(one.get(key) is not None and one.get(key) == other.get(key) for key in ("scenario", "seed"))
    return same and one.get("label") == other.get("label") == "simulated"


def exact(a: Floats, b: Floats) -> Estimate | None:
    """The ratio of two figures that are exact: an interval without width.

    Args:
        a: of shape (1,).
        b: likewise.

    Returns:
        None where one of them is 0 or was not measured: such a ratio says nothing.
    """
    one, other = float(a[0]), float(b[0])
    if not (one > 0 and other > 0 and math.isfinite(one / other)):
        return None
    ratio = one / other
    return Estimate(ratio, ratio, ratio, 0.0, 1, 1.0)
