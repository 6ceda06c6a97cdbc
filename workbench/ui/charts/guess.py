"""A guess and what was measured, on one axis: what a prediction reveals."""

from __future__ import annotations

from typing import Any

import altair as alt
import pandas as pd

from workbench.i18n import marked, translate
from workbench.ui.charts.scales import powers, y_axis
from workbench.ui.charts.theme import Look, finish

NAME = marked("Expected and measured")
_SERIES = {"guess": marked("expected"), "measured": marked("measured")}
_TIPS = (marked("place"), marked("series"), marked("value"))


def guess_chart(
    rows: pd.DataFrame,
    origin: str,
    look: Look | None = None,
    *,
    label: str,
    unit: str,
    named: bool = False,
    span: tuple[float, float] | None = None,
    log: bool = False,
) -> alt.Chart | alt.LayerChart:
    """A step line for what was expected (dashed) and one for what was measured.

    Args:
        rows: a row a column of the drawing: ``place``, ``begin``, ``end``, ``guess``, ``measured``; NaN is not drawn.
        origin: where the measured numbers come from; stands in the heading.
        look: theme and size.
        label: what the values are.
        unit: of them.
        named: columns have names (``place``) in place of a time axis in s.
        span: ends of the y axis; both lines always fit.
        log: whether the y axis is logarithmic; a value of 0 then has no mark.
    """
    look = look or Look()
    colours = look.palette
    kept = ["place", "begin", "end"]
    data = rows.melt(kept, list(_SERIES), "series", "value").dropna(subset=["value"])
    data["series"] = data["series"].map(_SERIES)
    if log:
        data = data[data["value"] > 0]
    low, high = _span(data["value"], span, log)
    scale = alt.Scale(type="log", domain=[low, high], nice=False) if log else alt.Scale(domain=[low, high], nice=False)
    ticks: dict[str, Any] = {"values": powers((low, high)), "format": ",~f"} if log else {"tickCount": 4}
    y = alt.Y("value:Q", scale=scale, axis=y_axis(translate("{unit} (log)", unit=unit) if log else unit, **ticks))
    series = list(_SERIES.values())
    colour = alt.Color(
        "series:N",
        scale=alt.Scale(domain=series, range=[colours.muted, colours.decode]),
        legend=alt.Legend(title=None) if look.legend else None,
    )
    if named:
        order = list(dict.fromkeys(rows["place"]))
        marks = alt.Chart(data).mark_point(size=70, opacity=1, strokeWidth=2, aria=False)
        shape = alt.Shape("series:N", scale=alt.Scale(domain=series, range=["diamond", "circle"]), legend=None)
        x = alt.X("place:N", sort=order, axis=alt.Axis(title=None, labelAngle=0, grid=True, labelLimit=140))
        tips = [alt.Tooltip(f"{name}:{kind}") for name, kind in zip(_TIPS, "NNQ", strict=True)]
        chart = marks.encode(x=x, y=y, color=colour, shape=shape, tooltip=tips)
    else:
        dash = alt.StrokeDash("series:N", scale=alt.Scale(domain=series, range=[[5, 3], [1, 0]]), legend=None)
        end = float(rows["end"].max())
        x = alt.X(
            "t:Q", scale=alt.Scale(domain=[0, end], nice=False), axis=alt.Axis(title=translate("time, s"), tickCount=8)
        )
        lines = alt.Chart(_corners(data)).mark_line(strokeWidth=1.8, aria=False)
        chart = lines.encode(x=x, y=y, color=colour, strokeDash=dash, detail="series:N", order="order:Q")
    return finish(
        chart,
        look,
        name=f"{translate(NAME)}{translate(': ')}{label}",
        subtitle=[
            origin,
            translate("dashed: expected · solid: measured")
            if not named
            else translate("diamond: expected · circle: measured"),
        ],
        description=translate("{label} ({unit}), expected and measured.", label=label, unit=unit),
    )


def _corners(data: pd.DataFrame) -> pd.DataFrame:
    """Both ends of each column, in order: a line through them is a step line."""
    ends = [
        data.assign(t=data[name], order=2 * data["begin"].rank(method="dense") + at)
        for at, name in enumerate(("begin", "end"))
    ]
    return pd.concat(ends).sort_values(["series", "order"])[["series", "t", "value", "order"]]


def _span(values: pd.Series, asked: tuple[float, float] | None, log: bool) -> tuple[float, float]:
    low, high = asked or ((1.0, 10.0) if log else (0.0, 1.0))
    if len(values):
        low, high = min(low, float(values.min())), max(high, float(values.max()))
    return low, high
