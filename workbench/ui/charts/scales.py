"""Axes and their domains; in a live chart an end of a domain is a parameter, which a signal moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import altair as alt
import numpy as np
import pandas as pd

from workbench.i18n import translate
from workbench.ui.charts.theme import Look

Bound = float | str  # a number, or the name of a parameter
Bounds = tuple[Bound, Bound]
Source: TypeAlias = pd.DataFrame | alt.NamedData  # the rows, or the name that rows will come under
Sources: TypeAlias = Mapping[str, Source]  # what is not in it is not drawn

WINDOW = ("t0", "t1")  # parameters of every live chart: the time that it shows, s from the run's zero
AXIS_EXTENT = 44  # px kept for the labels of a y axis, so that the time axes of stacked charts line up
RIGHT_ROOM = AXIS_EXTENT + 15  # px that a right axis with its title takes, on a live chart
_POWERS = range(-2, 7)  # of ten, that a live log axis may have a tick at


def named(*names: str) -> dict[str, alt.NamedData]:
    """Sources of a live chart."""
    return {name: alt.NamedData(name) for name in names}


def present(**frames: pd.DataFrame) -> dict[str, Source]:
    """Sources of a static chart: the frames that have rows."""
    return {name: frame for name, frame in frames.items() if len(frame)}


def domain(bounds: Bounds) -> list[Any]:
    """Bounds as Vega-Lite takes them."""
    return [{"expr": bound} if isinstance(bound, str) else bound for bound in bounds]


def edges(look: Look) -> tuple[str, str]:
    """First and last moment of the time axis, as Vega expressions."""
    low, high = WINDOW if look.live else look.x_domain or (0.0, 0.0)
    return str(low), str(high)


def middle(look: Look) -> str:
    """The moment in the middle of the plot, as a Vega expression."""
    low, high = edges(look)
    return f"({low} + {high}) / 2"


def time_axis(field_name: str, look: Look) -> alt.X:
    """The x channel that all time charts share."""
    bounds: Bounds | None = WINDOW if look.live else look.x_domain
    scale = alt.Scale(domain=domain(bounds), nice=False) if bounds else alt.Scale(zero=True, nice=False)
    words = (
        {"title": None, "labelExpr": "datum.label + ' s'"}
        if look.live
        else {"title": translate(translate("time since the run began, s"))}
    )
    return alt.X(f"{field_name}:Q", scale=scale, axis=alt.Axis(tickCount=8, **words))


def y_axis(title: str, **more: Any) -> alt.Axis:
    """A left axis with the same room for its labels on every chart, so that time axes line up."""
    return alt.Axis(title=title, minExtent=AXIS_EXTENT, maxExtent=AXIS_EXTENT, **more)


def right_axis(title: str, look: Look, offset: int = 0, **more: Any) -> alt.Axis:
    """A right axis; on live charts, which share the width of what holds them, with the same room on each.

    Args:
        title: of the axis.
        look: of the chart.
        offset: px between the plot and the axis.
        **more: for the axis.
    """
    room = {"minExtent": AXIS_EXTENT - offset, "maxExtent": AXIS_EXTENT - offset} if look.live else {}
    return alt.Axis(title=title, orient="right", grid=False, offset=offset, **room, **more)


def decades(values: pd.Series | Sequence[pd.Series]) -> tuple[float, float]:
    """The whole decades that hold all positive values: the domain of a log axis."""
    pooled = values if isinstance(values, pd.Series) else pd.concat([part.astype(float) for part in values])
    positive = pooled[pooled > 0]
    if positive.empty:
        return (1.0, 10.0)
    low, high = int(np.floor(np.log10(positive.min()))), int(np.ceil(np.log10(positive.max())))
    return (float(f"1e{low}"), float(f"1e{max(high, low + 1)}"))


def powers(bounds: Bounds) -> list[float] | dict[str, str]:
    """The powers of ten in a domain: the ticks of a log axis."""
    low, high = bounds
    if isinstance(low, str) or isinstance(high, str):
        ladder = [float(f"1e{n}") for n in _POWERS]
        first, last = f"ceil(log({low}) / LN10 - 1e-9)", f"floor(log({high}) / LN10 + 1e-9)"
        return {"expr": f"slice({ladder}, {first} - {_POWERS[0]}, {last} - {_POWERS[0] - 1})"}
    lowest, highest = np.ceil(np.log10(low) - 1e-9), np.floor(np.log10(high) + 1e-9)
    return [float(f"1e{n}") for n in range(int(lowest), int(highest) + 1)]


def root_ticks(top: Bound, powers_of_two: bool = False) -> list[float] | dict[str, str]:
    """Ticks of a square-root axis from 0 to ``top``: round numbers, largest first, that leave room for their labels.

    Where the top is a parameter they are powers of two, and it should be 64 or more.
    """
    if isinstance(top, str):
        largest = f"pow(2, floor(log({top}) / LN2 + 1e-9))"
        return {"expr": f"[0, {', '.join(f'{largest} / {n}' for n in (32, 8, 4, 2, 1))}]"}
    ladder = [2.0**n for n in range(1, 25)] if powers_of_two else [m * 10.0**n for n in range(-3, 8) for m in (1, 2, 5)]
    ticks = [0.0]
    for value in sorted(ladder, reverse=True):
        near = min(abs(np.sqrt(value) - np.sqrt(tick)) for tick in ticks) / np.sqrt(top)
        if value <= top and near >= 0.11:
            ticks.append(value)
    return sorted(ticks)


def zoomable(chart: alt.Chart, look: Look) -> alt.Chart:
    """Let drag move and Shift+wheel zoom the time axis; a plain wheel still scrolls the page.

    A live chart follows its window instead, which all charts share.
    """
    if not look.zoom or look.live:
        return chart
    return chart.add_params(
        alt.selection_interval(name="zoom", bind="scales", encodings=["x"], zoom="wheel![event.shiftKey]")
    )
