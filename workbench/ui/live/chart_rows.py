"""The rows of one live chart: numbered, bounded, and told as what came and what went."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from workbench.ui.live.changes import Row
from workbench.ui.live.thinner import Thinner

Group = tuple[tuple[str, Row], ...]  # dataset and row, of things that come and go together
PLOT_PX = 720  # width of a plot that is taken for granted where a length in pixels is needed


@dataclass(frozen=True)
class Window:
    """What a chart shows of the run's time, s."""

    low: float
    high: float

    @property
    def pixel(self) -> float:
        """Seconds in about a pixel."""
        return (self.high - self.low) / PLOT_PX


class ChartRows:
    """Gathers the rows of one chart."""

    def __init__(self) -> None:
        self._ids = count(1)
        self._thinners: list[Thinner[Group]] = []
        self._shown: dict[str, dict[tuple[tuple[str, Hashable], ...], int]] = {}
        self._add: dict[str, list[Row]] = {}
        self._drop: dict[str, list[int]] = {}

    def thinner(self, limit: int, series: int = 1, weight: int = 1) -> Thinner[Group]:
        """Make a thinner whose rows are the chart's; see :class:`~workbench.ui.live.thinner.Thinner`."""
        made: Thinner[Group] = Thinner(limit, series, weight)
        self._thinners.append(made)
        return made

    def group(self, *rows: tuple[str, Row]) -> Group:
        """Number rows, given as dataset and row."""
        for _, row in rows:
            row["id"] = next(self._ids)
        return rows

    def show(self, dataset: str, rows: Sequence[Row]) -> None:
        """Have exactly these few rows in a dataset that no thinner feeds."""
        before = self._shown.get(dataset, {})
        after = {}
        for row in rows:
            key = tuple(row.items())
            number = before.get(key)
            if number is None:
                number = next(self._ids)
                self._add.setdefault(dataset, []).append({**row, "id": number})
            after[key] = number
        gone = [number for key, number in before.items() if key not in after]
        if gone:
            self._drop.setdefault(dataset, []).extend(gone)
        self._shown[dataset] = after

    def trim(self, before_s: float) -> None:
        """Let go of what has left the window."""
        for thinner in self._thinners:
            thinner.trim(before_s)

    def drain(self) -> tuple[dict[str, list[Row]], dict[str, list[int]]]:
        """Rows that came and ids of rows that went since the last call, by dataset."""
        add, self._add = self._add, {}
        drop, self._drop = self._drop, {}
        for thinner in self._thinners:
            drained = thinner.drain()
            for group in drained.added:
                for dataset, row in group:
                    add.setdefault(dataset, []).append(row)
            for group in drained.dropped:
                for dataset, row in group:
                    drop.setdefault(dataset, []).append(row["id"])
        return add, drop


def number(row: Mapping[str, Any], *names: str) -> float | None:
    """The first of these fields that holds a finite number."""
    for name in names:
        value = row.get(name)
        if value is not None and math.isfinite(value):
            return float(value)
    return None


def bar_end(start_s: float, end_s: float, window: Window, reach_s: float) -> float:
    """Right edge of a step's bar, s; as :func:`workbench.ui.charts.data.bar_ends`, without knowing the next step.

    A narrow bar reaches a pixel further, under the next one, so that no seam shows between them.

    Args:
        start_s: of the step.
        end_s: of the step.
        window: that it is drawn in.
        reach_s: how far the bar stands for steps that are not drawn.
    """
    edge = max(end_s, start_s + reach_s)
    return edge - window.pixel if edge - start_s > 5 * window.pixel else edge + window.pixel


def reach_s(thinner: Thinner[Group]) -> float:
    """How far a bar stands for others: two buckets, since the largest of two neighbours may be so far apart."""
    return 2 * thinner.width_s
