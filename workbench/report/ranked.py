"""Percentiles of all gaps of a run from those that a page holds: each has its rank among all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from workbench.report.thinning import RANK


@dataclass(frozen=True)
class Ranked:
    """Gaps by their rank, shortest first.

    Attributes:
        count: of all gaps.
        ranks: of those that are known.
        gap_ms: likewise.
    """

    count: int
    ranks: NDArray[np.int64]
    gap_ms: NDArray[np.float64]

    @classmethod
    def of(cls, columns: Mapping[str, Sequence[Any]], count: int) -> Self:
        """The gaps of a table: all of them, or with a column of ranks.

        Args:
            columns: ``gap_ms``, and ``rank`` where some are left out.
            count: of all gaps, as the page says; what it is, is counted where all are there.
        """
        gap_ms = np.array(columns.get("gap_ms", []), dtype=np.float64)
        ranks = columns.get(RANK)
        if ranks is None:
            return cls(len(gap_ms), np.arange(len(gap_ms)), np.sort(gap_ms))
        order = np.argsort(np.array(ranks, dtype=np.int64), kind="stable")
        return cls(count, np.array(ranks, dtype=np.int64)[order], gap_ms[order])

    @property
    def sound(self) -> bool:
        """Whether ranks and lengths are in one order, no rank is there twice, and none is beyond the count."""
        inside = not len(self.ranks) or (self.ranks[0] >= 0 and self.ranks[-1] < self.count)
        return bool(inside and (np.diff(self.ranks) > 0).all() and (np.diff(self.gap_ms) >= 0).all())

    def percentile(self, share: float) -> float | None:
        """A percentile of all gaps, ms, as numpy interpolates; None where the rows do not tell it."""
        if not self.count or not self.sound:
            return None
        place = (self.count - 1) * share / 100
        low, high = self._at(int(np.floor(place))), self._at(int(np.ceil(place)))
        return None if low is None or high is None else low + (high - low) * (place - np.floor(place))

    def above(self, gap_ms: float) -> int | None:
        """How many of all gaps are longer; None where the rows do not tell it."""
        if not self.sound:
            return None
        first = int(np.searchsorted(self.gap_ms, gap_ms, side="right"))
        if first == len(self.ranks):
            return 0 if not self.count or self._at(self.count - 1) is not None else None
        rank = int(self.ranks[first])
        known = rank == 0 or (first > 0 and int(self.ranks[first - 1]) == rank - 1)
        return self.count - rank if known else None

    def _at(self, rank: int) -> float | None:
        place = int(np.searchsorted(self.ranks, rank))
        return float(self.gap_ms[place]) if place < len(self.ranks) and self.ranks[place] == rank else None
