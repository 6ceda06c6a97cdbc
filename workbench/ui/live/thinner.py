"""Thinning while rows come in: a bounded number of rows in which every series still has its spikes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

G = TypeVar("G")

_FINEST_S = 2.0**-10  # width of the first buckets: shorter than any step
_COARSEN_TO = 0.75  # share of the limit that is left after thinning, so that the next one is many offers away
_REFINE_AT = 0.2  # share of the limit below which buckets get finer again


@dataclass(slots=True, eq=False)
class _Item(Generic[G]):
    """Something that was offered, and how many cells it is the largest of."""

    at_s: float
    until_s: float
    values: Mapping[str, float]
    group: G
    weight: int
    cells: int = 0


@dataclass(slots=True)
class Drained(Generic[G]):
    """What came into sight and what went out of it, each in the order in which that happened."""

    added: list[G] = field(default_factory=list)
    dropped: list[G] = field(default_factory=list)


class Thinner(Generic[G]):
    """Keeps of what it is offered as much as fits.

    While everything fits, everything is kept. Then time is cut into buckets, and each series keeps the largest of each.
    Buckets double and halve in width as the load asks. Widths are powers of two, so that two buckets make just
    one of the next width, and its largest was the largest of one of them. Whatever was largest in a bucket, as wide as
    they have been, that lies in the window is therefore kept; where the window's edge cuts a bucket, what was not the
    largest of it may be lost.
    An offer costs a few dictionary operations; the rare change of width goes through all that is kept.

    Args:
        limit: most rows that are kept, the weights of all groups together.
        series: most series there will be.
        weight: most rows of one group.

    Raises:
        ValueError: the limit has no room for two buckets of all series.
    """

    def __init__(self, limit: int, series: int = 1, weight: int = 1) -> None:
        if limit * _COARSEN_TO < 2 * series * weight:  # two: zero may lie between them, whatever their width
            raise ValueError(f"limit {limit} has no room for {series} series with groups of {weight} rows")
        self._limit = limit
        self._width_s = 0.0  # 0: everything is kept
        self._items: dict[_Item[G], None] = {}  # in the order in which they were offered
        self._cells: dict[tuple[str, int], _Item[G]] = {}
        self._weight = 0
        self._since_s = -math.inf
        self._new: dict[_Item[G], None] = {}  # since the last drain
        self._gone: list[G] = []

    def __len__(self) -> int:
        """Rows that are kept."""
        return self._weight

    @property
    def width_s(self) -> float:
        """Width of a bucket; 0 while everything is kept."""
        return self._width_s

    def largest(self, *series: str) -> float | None:
        """Return the largest value that is kept of these series; none where there is none."""
        return max(
            (value for item in self._items for name in series if (value := item.values.get(name)) is not None),
            default=None,
        )

    def groups(self) -> Iterator[G]:
        """All groups that are kept, in the order in which they were offered."""
        return (item.group for item in self._items)

    def offer(
        self, at_s: float, values: Mapping[str, float], group: G, weight: int = 1, until_s: float | None = None
    ) -> None:
        """Take a group of rows if it is the largest of any of its series in its bucket.

        Args:
            at_s: its time, which says in which bucket it is.
            values: series → value, finite; without any it is not kept.
            group: the rows.
            weight: how many.
            until_s: when the last of it leaves the window; none is ``at_s``.
        """
        item = _Item(at_s, at_s if until_s is None else until_s, values, group, weight)
        if not values or item.until_s < self._since_s:
            return
        self._place(item)
        if item.cells:
            self._items[item] = None
            self._new[item] = None
            self._weight += weight
            if self._weight > self._limit:
                self._coarsen()

    def trim(self, before_s: float) -> None:
        """Let go of what ended before ``before_s``, now and from now on; and use the room for finer buckets."""
        self._since_s = before_s
        for item in [item for item in self._items if item.until_s < before_s]:
            for name in item.values if self._width_s else ():
                if self._cells.get(cell := (name, self._bucket(item))) is item:
                    del self._cells[cell]
            self._drop(item)
        if self._width_s and self._weight < self._limit * _REFINE_AT:
            self._width_s = self._width_s / 2 if self._width_s > _FINEST_S else 0.0
            self._rebuild()

    def clear(self) -> None:
        """Let go of everything."""
        for item in list(self._items):
            self._drop(item)
        self._cells.clear()

    def drain(self) -> Drained[G]:
        """What changed since the last call; what came and went in between is in neither list."""
        drained = Drained([item.group for item in self._new], self._gone)
        self._new, self._gone = {}, []
        return drained

    def _bucket(self, item: _Item[G]) -> int:
        return math.floor(item.at_s / self._width_s)

    def _place(self, item: _Item[G]) -> None:
        """Enter an item in the cells of which it is the largest; whoever is the largest of none any more goes."""
        if not self._width_s:
            item.cells = 1
            return
        bucket = self._bucket(item)
        for name, value in item.values.items():
            holder = self._cells.get((name, bucket))
            if holder is not None:
                if holder.values[name] >= value:
                    continue
                holder.cells -= 1
                if not holder.cells:
                    self._drop(holder)
            self._cells[name, bucket] = item
            item.cells += 1

    def _drop(self, item: _Item[G]) -> None:
        del self._items[item]
        self._weight -= item.weight
        if item in self._new:
            del self._new[item]
        else:
            self._gone.append(item.group)

    def _coarsen(self) -> None:
        while self._weight > self._limit * _COARSEN_TO:
            self._width_s = self._width_s * 2 or self._first_width_s()
            self._rebuild()

    def _first_width_s(self) -> float:
        """A width from which it is not far to the one that is needed: with as many buckets as the limit has rows."""
        times = [item.at_s for item in self._items]
        wanted = (max(times) - min(times)) / self._limit
        return max(_FINEST_S, 2.0 ** math.floor(math.log2(wanted))) if wanted > 0 else _FINEST_S

    def _rebuild(self) -> None:
        """Fill the cells anew for another width."""
        self._cells.clear()
        for item in self._items:
            item.cells = 0
        for item in list(self._items):
            self._place(item)
        # An item may have lost its last cell before its own turn came, or never have got one.
        for item in [item for item in self._items if not item.cells]:
            self._drop(item)
