"""Charts of cells one wide and one high: their axes, their words, and the edge between two kinds of cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

STRONG = 0.55  # opacity of the most: text in ink reads on it
_INSET = 0.02  # of a cell


def cell_axis(kind: Any, field: str, title: str, labels: Sequence[str]) -> Any:
    """A channel of cells that are one wide, with a label in the middle of each."""
    axis = alt.Axis(
        title=title,
        values=[i + 0.5 for i in range(len(labels))],
        labelExpr=f"{list(labels)}[floor(datum.value)]",
        grid=False,
        domain=False,
        ticks=False,
    )
    return kind(f"{field}:Q", scale=alt.Scale(domain=[0, len(labels)], nice=False), axis=axis)


def cell_words(base: alt.Chart, field: str, dy: int, colour: str, **font: Any) -> alt.Chart:
    """Words of a cell, ``dy`` px below its middle."""
    return base.mark_text(color=colour, dy=dy, aria=False, **font).encode(text=f"{field}:N")


def cell_frame(place: tuple[int, int], x: Any, y: Any, colour: str) -> alt.Chart:
    """A frame around a cell, a little inside, so that an edge beside it is seen.

    Args:
        place: of the cell, counted from the left and from below.
        x: channel of the columns.
        y: channel of the rows.
        colour: of the frame.
    """
    left, low = place
    mark = {"x": left + _INSET, "x2": left + 1 - _INSET, "y": low + _INSET, "y2": low + 1 - _INSET}
    return (
        alt.Chart(pd.DataFrame([mark]))
        .mark_rect(filled=False, stroke=colour, strokeWidth=2, aria=False)
        .encode(x=x, x2="x2:Q", y=y, y2="y2:Q")
    )


def cell_border(edges: Sequence[Mapping[str, float]], x: Any, y: Any, colour: str) -> alt.Chart:
    """A dashed line along edges, see :func:`cell_edges`."""
    return (
        alt.Chart(pd.DataFrame(list(edges)))
        .mark_rule(color=colour, strokeWidth=2.5, strokeDash=[6, 3], aria=False)
        .encode(x=x, x2="x2:Q", y=y, y2="y2:Q")
    )


def cell_edges(feasible: Mapping[tuple[int, int], bool]) -> list[dict[str, int]]:
    """Sides between a cell that is feasible and one beside it that is not."""
    found = []
    for (x, y), good in feasible.items():
        if feasible.get((x + 1, y), good) != good:
            found.append({"x": x + 1, "x2": x + 1, "y": y, "y2": y + 1})
        if feasible.get((x, y + 1), good) != good:
            found.append({"x": x, "x2": x + 1, "y": y + 1, "y2": y + 1})
    return found


def sampled_edges(feasible: Mapping[tuple[int, int], bool]) -> list[dict[str, float]]:
    """The same where not every cell was sampled: half-way between two that follow each other in a row or a column."""
    found: list[dict[str, float]] = []
    for (x, y), good in feasible.items():
        right = min((at for at, row in feasible if row == y and at > x), default=None)
        if right is not None and feasible[right, y] != good:
            middle = (x + 1 + right) / 2
            found.append({"x": middle, "x2": middle, "y": y, "y2": y + 1})
        above = min((at for column, at in feasible if column == x and at > y), default=None)
        if above is not None and feasible[x, above] != good:
            middle = (y + 1 + above) / 2
            found.append({"x": x, "x2": x + 1, "y": middle, "y2": middle})
    return found
