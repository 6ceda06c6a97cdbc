"""Figures of several settings with their bands, beside what somebody says of them and what physics allows."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from workbench.i18n import counted, marked, translate
from workbench.ui.charts.scales import decades, powers
from workbench.ui.charts.theme import Look, config

NAME = marked("Said, simulated, and the floor")
SIMULATED, SAID, FLOOR = marked("simulated"), marked("the article"), marked("the floor, nothing is faster")
_ROW = 30  # px of a setting


def band_chart(table: pd.DataFrame, figures: Sequence[str], origin: str, look: Look | None = None) -> alt.VConcatChart:
    """A plot a figure with a line a setting: a dot in its band, a diamond for what is said, a bar for the floor.

    Values are on a logarithmic axis; a figure that is 0 or NaN has no mark. A claim below the floor is drawn in the
    colour of alerts.

    Args:
        table: as :func:`workbench.claims.article_table` makes it: index ``policy`` and ``figure``, columns ``article``,
            ``floor``, ``simulated``, ``low``, ``high``.
        figures: to draw, from top to bottom; their unit is part of the name.
        origin: where the simulated numbers come from; stands in the heading.
        look: theme and width.

    Raises:
        KeyError: a figure or a column is missing.
    """
    look = look or Look()
    rows = table.reset_index()
    for figure in figures:
        if figure not in set(rows["figure"]):
            raise KeyError(figure)
    names = list(dict.fromkeys(rows["policy"]))
    plots = [_plot(rows[rows["figure"] == figure], figure, names, look) for figure in figures]
    chart = alt.vconcat(
        *plots,
        spacing=14,
        title=alt.TitleParams(
            text=look.title or translate(NAME),
            subtitle=[
                translate("{origin} · line: from the fastest to the slowest kernels", origin=translate(origin)),
                translate(
                    "dot: {simulated} · diamond: {said} (filled: below the floor, impossible) · bar: {floor}",
                    simulated=translate(SIMULATED),
                    said=translate(SAID),
                    floor=translate(FLOOR),
                ),
            ],
        ),
        description=translate(
            "{figures} of {settings}, simulated ({origin}), beside what the article says and the floor.",
            figures=translate(" and ").join(map(translate, figures)),
            settings=counted("{n} setting", "{n} settings", len(names)),
            origin=translate(origin),
        ),
    )
    return chart if look.bare else chart.configure(**config(look.palette))


def _plot(rows: pd.DataFrame, figure: str, names: list[str], look: Look) -> alt.LayerChart:
    values = [rows[name][rows[name] > 0] for name in ("article", "floor", "simulated", "low", "high")]
    span = decades(pd.concat(values))
    colours = look.palette
    x = alt.X(
        "simulated:Q",
        scale=alt.Scale(type="log", domain=list(span), nice=False),
        axis=alt.Axis(
            title=translate("{figure} (log)", figure=translate(figure)), values=powers(span), format=",~g", grid=True
        ),
    )
    base = alt.Chart(rows).encode(y=alt.Y("policy:N", sort=names, axis=alt.Axis(title=None, labelLimit=180)))
    tips = ["policy:N", *(alt.Tooltip(f"{name}:Q", format=",.4~g") for name in ("simulated", "low", "high"))]
    simulated = base.transform_filter("datum.simulated > 0")
    said = base.transform_filter("datum.article > 0")
    below = alt.condition("datum.article < datum.floor", alt.value(colours.alert), alt.value(colours.ground))
    return alt.layer(
        base.transform_filter("datum.floor > 0")
        .mark_tick(color=colours.ink, thickness=3, size=20, aria=False)
        .encode(x="floor:Q", tooltip=[alt.Tooltip("floor:Q", format=",.4~g")]),
        simulated.mark_rule(color=colours.decode, strokeWidth=4, opacity=0.35, aria=False).encode(
            x="low:Q", x2="high:Q"
        ),
        simulated.mark_point(
            shape="circle", size=60, color=colours.decode, fill=colours.decode, opacity=1, aria=False
        ).encode(x=x, tooltip=tips),
        said.mark_point(shape="diamond", size=80, color=colours.alert, opacity=1, strokeWidth=1.8, aria=False).encode(
            x="article:Q", fill=below, tooltip=["policy:N", alt.Tooltip("article:Q", format=",.4~g")]
        ),
    ).properties(width=look.width - 140, height=_ROW * len(names))
