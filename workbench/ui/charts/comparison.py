"""Two settings compared: the ratio of each measure with its interval, and the rounds that the verdict comes from."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import altair as alt
import numpy as np
import pandas as pd

from workbench.i18n import marked, translate
from workbench.origin import in_pieces
from workbench.printable import in_lines
from workbench.tune.compare.comparison import Comparison
from workbench.tune.compare.measures import MEASURES
from workbench.ui.charts.theme import Look, config, message_chart

if TYPE_CHECKING:
    from workbench.tune.compare.recorded import RecordedComparison

NAME = marked("A against B")
_AXIS = marked("B better  ←  times as good (log)  →  A better")
_EACH = marked("primary measure, each round · circle: A first, square: B first")
_ROW = 26  # px of a measure
_LABELS = 190  # px for their names
_LETTER = 5.5  # px, of the lines below the heading, which Vega does not wrap
_FINEST = 1.02  # least span of the axis to either side
_STEPS = (1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50, 100, 1000)


def comparison_chart(found: Comparison | RecordedComparison, look: Look | None = None) -> alt.VConcatChart | alt.Chart:
    """How often A does better than B, by measure, on a logarithmic axis; below it the ratio of each round.

    To the right of 1 A is better, whatever the measure: ratios of times and gaps are turned round. A filled mark has an
    interval that leaves out 1; the primary measure, whose interval holds at every look, is the one in the colour of the
    rounds; the grey band is the difference that is not worth knowing.

    Args:
        found: a comparison, also one that still goes on.
        look: theme and width.
    """
    look = look or Look(width=560)
    rows = advantages(found)
    words, line = translate(found.verdict.words), int((look.width - _LABELS) / _LETTER)
    if rows.empty:
        return message_chart(
            look,
            name=NAME,
            subtitle=in_pieces(found.origin),
            message=translate("Nothing to draw: {words}.", words=words),
        )
    resolve = found.resolve if isinstance(found, Comparison) else 0.0
    each = rounds_of(found) if isinstance(found, Comparison) else pd.DataFrame()
    top = _reach(rows, each)
    plots = [_measures(rows, top, resolve, look)]
    if len(each):
        plots.append(_rounds(each, top, resolve, look))
    chart = alt.vconcat(
        *plots,
        spacing=14,
        title=alt.TitleParams(
            text=look.title or f"{translate(NAME)}{translate(': ')}{translate(found.title)}",
            subtitle=[*in_lines(in_pieces(found.origin), line), *in_lines(words, line)],
        ),
        description=translate(
            "Ratios of {count} measures of two settings with their intervals ({said}).",
            count=len(rows),
            said=f"{in_pieces(found.origin)} · {words}",
        ),
    )
    return chart if look.bare else chart.configure(**config(look.palette))


def advantages(found: Comparison | RecordedComparison) -> pd.DataFrame:
    """One row a measure.

    Columns: ``measure`` (in words), ``times``, ``low``, ``high`` (above 1 A is better), ``part``, ``better``,
    ``level`` (of the interval).
    """
    table = found.table.reset_index()
    down = np.array([MEASURES[name].direction == "minimize" for name in table["measure"]], dtype=bool)
    return pd.DataFrame(
        {
            "measure": [translate(MEASURES[name].words) for name in table["measure"]],
            "times": np.where(down, 1 / table["ratio"], table["ratio"]),
            "low": np.where(down, 1 / table["high"], table["low"]),
            "high": np.where(down, 1 / table["low"], table["high"]),
            "part": table["part"],
            "better": table["better"].replace("", "neither"),
            "level": table["level"],
        }
    )


def rounds_of(found: Comparison) -> pd.DataFrame:
    """One row a round that has the primary measure: ``round`` (from 1), ``times`` (above 1 A is better), ``order``."""
    down = found.measure.direction == "minimize"
    rows = []
    for one in found.rounds:
        a, b = one.a.get(found.primary, 0.0), one.b.get(found.primary, 0.0)
        if a > 0 and b > 0:
            rows.append({"round": one.number + 1, "times": b / a if down else a / b, "order": one.order})
    return pd.DataFrame(rows, columns=["round", "times", "order"])


def _reach(rows: pd.DataFrame, each: pd.DataFrame) -> float:
    """The largest factor on the axis, the same to either side of 1."""
    logs = [np.abs(np.log(frame[name])).to_numpy() for frame, name in _drawn(rows, each)]
    pooled = np.concatenate(logs)
    most = float(np.exp(pooled[np.isfinite(pooled)].max(initial=math.log(_FINEST))))
    return next((step for step in _STEPS if step >= most * 1.02), _STEPS[-1])


def _drawn(rows: pd.DataFrame, each: pd.DataFrame) -> list[tuple[pd.DataFrame, str]]:
    return [(rows, "low"), (rows, "high"), (rows, "times"), *([(each, "times")] if len(each) else [])]


def _x(top: float, title: str | None, field: str = "times") -> alt.X:
    ticks = [step for step in _STEPS if step <= top][-3:]
    values = sorted({1.0, *ticks, *(1 / step for step in ticks)})
    scale = alt.Scale(type="log", domain=[1 / top, top], nice=False, clamp=True)
    return alt.X(
        f"{field}:Q",
        scale=scale,
        axis=alt.Axis(title=title and translate(title), values=values, format=".3~g", grid=True),
    )


def _measures(rows: pd.DataFrame, top: float, resolve: float, look: Look) -> alt.LayerChart:
    colours = look.palette
    order = rows["measure"].tolist()
    y = alt.Y("measure:N", sort=order, axis=alt.Axis(title=None, labelLimit=_LABELS, minExtent=_LABELS))
    x = _x(top, _AXIS)
    base = alt.Chart(rows).encode(y=y)
    colour = alt.condition("datum.part == 'primary'", alt.value(colours.alert), alt.value(colours.decode))
    fill = (
        alt.when("datum.better == 'neither'")
        .then(alt.value(colours.ground))
        .when("datum.part == 'primary'")
        .then(alt.value(colours.alert))
        .otherwise(alt.value(colours.decode))
    )
    tips = [
        "measure:N",
        *(alt.Tooltip(f"{name}:Q", format=".3f") for name in ("times", "low", "high")),
        alt.Tooltip("level:Q", format=".2%"),
        "better:N",
        "part:N",
    ]
    layers = [
        *_ground(top, resolve, look, _AXIS),
        base.mark_rule(aria=False, strokeWidth=3).encode(
            x=_x(top, _AXIS, "low"), x2="high:Q", color=colour, tooltip=tips
        ),
        base.mark_point(shape="circle", size=70, opacity=1, strokeWidth=2, aria=False).encode(
            x=x, color=colour, fill=fill, tooltip=tips
        ),
    ]
    return alt.layer(*layers).properties(width=look.width - _LABELS, height=_ROW * len(rows))


def _rounds(each: pd.DataFrame, top: float, resolve: float, look: Look) -> alt.LayerChart:
    y = alt.Y(
        "round:O",
        axis=alt.Axis(
            title=None, minExtent=_LABELS, labelOverlap=True, labelExpr=f"'{translate('round')} ' + datum.label"
        ),
    )
    marks = (
        alt.Chart(each)
        .mark_point(size=46, opacity=1, strokeWidth=1.6, color=look.palette.alert, aria=False)
        .encode(
            x=_x(top, _EACH),
            y=y,
            shape=alt.Shape("order:N", scale=alt.Scale(domain=["AB", "BA"], range=["circle", "square"]), legend=None),
            tooltip=["round:O", alt.Tooltip("times:Q", format=".3f"), "order:N"],
        )
    )
    height = min(10 * len(each) + 20, 220)
    return alt.layer(*_ground(top, resolve, look, _EACH), marks).properties(width=look.width - _LABELS, height=height)


def _ground(top: float, resolve: float, look: Look, title: str) -> list[alt.Chart]:
    """The line where both are the same, and the band of what is not worth knowing."""
    one = alt.Chart(pd.DataFrame({"times": [1.0]})).mark_rule(color=look.palette.ink, strokeDash=[4, 3], aria=False)
    layers = [one.encode(x=_x(top, title))]
    if resolve:
        band = pd.DataFrame({"low": [max(1 / (1 + resolve), 1 / top)], "high": [min(1 + resolve, top)]})
        layers.insert(
            0,
            alt.Chart(band)
            .mark_rect(color=look.palette.grid, opacity=0.7, aria=False)
            .encode(x=_x(top, title, "low"), x2="high:Q"),
        )
    return layers
