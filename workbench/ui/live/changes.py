"""What passes between the rows of a run and the board that draws them: charts, and what changed in their rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Row = dict[
    str, Any
]  # plain JSON: text, finite numbers, None; "id" is an int, unique in its dataset and never used again
Rows = dict[str, dict[str, dict[int, Row]]]  # chart → dataset → id → row


@dataclass(frozen=True)
class BoardChart:
    """One chart of a board.

    Attributes:
        id: names the chart in :class:`Changes`.
        title: heading, in words.
        description: for screen readers.
        light: Vega-Lite or Vega spec for a light page. Its data have names and no rows, it is as wide as the page says,
            and its parameters (``t0``, ``t1``, ...) are the signals that it follows.
        dark: the same for a dark page.
        note: beside the heading; where numbers come from, and what the marks are.
        timed: whether its x axis is the run's time.
    """

    id: str
    title: str
    description: str
    light: Mapping[str, Any]
    dark: Mapping[str, Any]
    note: str = ""
    timed: bool = True


@dataclass(frozen=True)
class Changes:
    """What happened to the rows since the changes before; a row that changed is dropped and added under a new id.

    Attributes:
        add: chart → dataset → new rows, in the order of time.
        drop: chart → dataset → ids of rows that were there and go.
        signals: values of chart parameters: ``t0`` and ``t1`` (s from the run's zero), tops of axes; all of them,
            changed or not.
    """

    add: Mapping[str, Mapping[str, list[Row]]] = field(default_factory=dict)
    drop: Mapping[str, Mapping[str, list[int]]] = field(default_factory=dict)
    signals: Mapping[str, float] = field(default_factory=dict)
