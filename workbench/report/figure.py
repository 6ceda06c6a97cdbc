"""A chart as a page has it: drawn for a start, with its spec for who wants to look closer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import altair as alt

from workbench.printable import in_lines, letters
from workbench.report.svg import static_svg
from workbench.ui.charts.localise import localise

_LETTER = 5.3  # px, of the lines below a heading
Chart: TypeAlias = alt.Chart | alt.LayerChart | alt.HConcatChart


@dataclass(frozen=True)
class Figure:
    """One chart: static for a start, and the spec that makes it interactive."""

    id: str
    svg: str
    spec: dict[str, Any]
    description: str


def figure_of(name: str, chart: Chart) -> Figure:
    """Draw a chart.

    Args:
        name: unique in the page.
        chart: what is drawn.
    """
    spec: dict[str, Any] = chart.to_dict()
    spec.pop("$schema")  # an address, and the page knows what it holds
    localise(spec)
    wrap_heading(spec)
    return Figure(name, static_svg(spec, name), spec, spec["description"])


def wrap_heading(spec: dict[str, Any]) -> None:
    """Break the lines below a chart's heading that are wider than its plot, since a drawing is as wide as its text."""
    title, width = spec.get("title"), spec.get("width")
    if not isinstance(title, dict) or not isinstance(width, int) or not title.get("subtitle"):
        return
    lines = [title["subtitle"]] if isinstance(title["subtitle"], str) else title["subtitle"]
    most, wrapped = int(width / _LETTER), list[str]()
    for line in lines:
        wrapped.append("")
        for part in line.split(" · "):
            longer = f"{wrapped[-1]} · {part}" if wrapped[-1] else part
            if letters(longer) <= most:
                wrapped[-1] = longer
                continue
            pieces = [part]
            if letters(part) > most:
                pieces = in_lines(part, most)
            wrapped[-1:] = [*filter(None, wrapped[-1:]), *pieces]
    title["subtitle"] = wrapped
