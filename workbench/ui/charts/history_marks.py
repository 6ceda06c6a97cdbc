"""How the history of requests is drawn: bars, lines, crosses, and a legend of small bars and lines."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from workbench.i18n import marked, translate
from workbench.ui.charts.knobs import draw_knobs
from workbench.ui.charts.scales import Source, Sources, time_axis, y_axis, zoomable
from workbench.ui.charts.theme import Look, Palette

NAME = marked("History of requests")
LINES = ("queued", "preempted")  # phases in which nothing is computed: lines, the others are bars
# Half the height of a bar, as a share of its lane: a second channel beside colour.
HEIGHTS = {"queued": 0.0, "prefill": 0.4, "decode": 0.17, "preempted": 0.0, "recompute": 0.4}
_SYMBOLS = {  # in the legend
    "queued": "M-1.4,0L1.4,0",
    "prefill": "M-1.2,-.9L1.2,-.9L1.2,.9L-1.2,.9Z",
    "decode": "M-1.2,-.35L1.2,-.35L1.2,.35L-1.2,.35Z",
    "preempted": "M-1.4,0L-.7,0M-.3,0L.3,0M.7,0L1.4,0",
    "recompute": "M-1.2,-.9L1.2,-.9L1.2,.9L-1.2,.9Z",
}
_LETTERS = 7  # of a request's name that the axis has room for


def draw_history(sources: Sources, look: Look, *, lanes: Mapping[int, str], there: Sequence[str]) -> alt.LayerChart:
    """Lay out the history.

    Args:
        sources: for each phase (t, t2, y, y2, phase, request, tokens, seconds), ``headings`` (lane, what), ``marks``
            (t, y, request, lost, again, away, recovered, label), ``labels``, those of them whose labels fit,
            and those of :func:`~workbench.ui.charts.knobs.draw_knobs`.
        look: of the chart.
        lanes: request of each lane; the lanes of headings are not among them.
        there: phases that there are, in the order of the legend.
    """
    layers: list[alt.Chart | alt.LayerChart] = [_phase(sources[phase], phase, lanes, look) for phase in there]
    if layers and look.zoom:
        layers[0] = zoomable(layers[0], look)
    return alt.layer(
        *layers,
        *_headings(sources, lanes, look),
        *_crosses(sources, lanes, look),
        *draw_knobs(sources, look),
        *([_legend(there, look.palette)] if look.legend else []),
    )


def short(name: str) -> str:
    """A name that fits beside its lane: its end tells requests of a class apart."""
    return name if len(name) <= _LETTERS else f"{name[:2]}…{name[3 - _LETTERS :]}"


def _colour(phase: str, palette: Palette) -> str:
    """What a preemption costs is in the colour of the preemption."""
    return {"queued": palette.muted, "prefill": palette.prefill, "decode": palette.decode}.get(phase, palette.alert)


def _y(field: str, lanes: Mapping[int, str]) -> alt.Y:
    """Lanes from the top down, with the names of their requests."""
    names = json.dumps({str(lane): short(name) for lane, name in lanes.items()})
    axis = y_axis("", values=list(lanes), labelExpr=f"({names})[datum.value]", grid=True, ticks=False, labelFontSize=10)
    return alt.Y(f"{field}:Q", scale=alt.Scale(domain=[max(lanes) + 0.5, -1.5], nice=False, zero=False), axis=axis)


def _phase(rows: Source, phase: str, lanes: Mapping[int, str], look: Look) -> alt.Chart:
    """All spans of one phase."""
    base = alt.Chart(rows).encode(
        x=time_axis("t", look),
        x2="t2:Q",
        y=_y("y", lanes),
        tooltip=[
            alt.Tooltip("request:N"),
            alt.Tooltip("phase:N"),
            alt.Tooltip("tokens:Q", format=","),
            alt.Tooltip("seconds:Q", format=",.3f"),
            alt.Tooltip("t:Q", title=translate("from, s"), format=".3f"),
        ],
    )
    colour = _colour(phase, look.palette)
    if phase in LINES:
        dash = [4, 2] if phase == "preempted" else [1, 0]
        return base.mark_rule(color=colour, strokeDash=dash, strokeWidth=1.3, clip=True, aria=False)
    return base.mark_rect(
        fill=_filling(phase, look.palette), stroke=colour, strokeWidth=1, clip=True, aria=False
    ).encode(y2="y2:Q")


def _filling(phase: str, palette: Palette) -> str:
    """A bar of what is computed once more is hollow."""
    return palette.ground if phase == "recompute" else _colour(phase, palette)


def _legend(there: Sequence[str], palette: Palette) -> alt.Chart:
    """A legend of small bars and lines, from marks that are not seen."""
    colours = [_colour(phase, palette) for phase in there]
    legend = alt.Legend(title=None, symbolSize=70, symbolOpacity=1, symbolStrokeWidth=1.3)

    def scale(values: list[Any]) -> alt.Scale:
        return alt.Scale(domain=list(there), range=values)

    fillings = ["transparent" if phase in LINES else _filling(phase, palette) for phase in there]
    return (
        alt.Chart(pd.DataFrame({"key": list(there)}))
        .mark_point(opacity=0, aria=False)
        .encode(
            x=alt.value(0),
            y=alt.value(0),
            shape=alt.Shape("key:N", scale=scale([_SYMBOLS[phase] for phase in there]), legend=legend),
            stroke=alt.Stroke("key:N", scale=scale(colours), legend=legend),
            fill=alt.Fill("key:N", scale=scale(fillings), legend=legend),
        )
    )


def _headings(sources: Sources, lanes: Mapping[int, str], look: Look) -> list[alt.Chart]:
    text = alt.Chart(sources["headings"]).mark_text(
        color=look.palette.muted, fontSize=10, fontWeight=600, align="left", baseline="middle", dx=2, aria=False
    )
    return [text.encode(x=alt.value(0), y=_y("lane", lanes), text="what:N")]


def _crosses(sources: Sources, lanes: Mapping[int, str], look: Look) -> list[alt.Chart]:
    """A cross at each preemption; the figure beside it stands on the line of the wait."""
    if "marks" not in sources:
        return []
    tip = [
        alt.Tooltip("request:N", title=translate("preempted")),
        alt.Tooltip("lost:Q", title=translate("tokens of KV lost"), format=","),
        alt.Tooltip("again:Q", title=translate("computed again, tokens"), format=","),
        alt.Tooltip("away:Q", title=translate("until it ran again, s")),
        alt.Tooltip("recovered:Q", title=translate("until its old context was back, s")),
        alt.Tooltip("t:Q", title=translate("at, s"), format=".3f"),
    ]
    crosses = (
        alt.Chart(sources["marks"])
        .mark_point(
            shape="M-1,-1L1,1M1,-1L-1,1",
            color=look.palette.alert,
            strokeWidth=2,
            size=46,
            opacity=1,
            clip=True,
            aria=False,
        )
        .encode(x=time_axis("t", look), y=_y("y", lanes), tooltip=tip)
    )
    if "labels" not in sources:
        return [crosses]
    labels = (
        alt.Chart(sources["labels"])
        .mark_text(
            color=look.palette.ink, fontSize=9, align="left", baseline="bottom", dx=6, dy=-1, clip=True, aria=False
        )
        .encode(x=time_axis("t", look), y=_y("y", lanes), text="label:N")
    )
    return [crosses, labels]
