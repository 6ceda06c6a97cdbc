"""How stalls are marked: the silence, its end, and by its shape what caused it."""

from __future__ import annotations

from collections.abc import Iterable

import altair as alt
import pandas as pd

from workbench.i18n import marked, translate
from workbench.ui.charts.scales import Source, Sources, time_axis
from workbench.ui.charts.theme import Look

_CROSS = "M-1,-.6L-.6,-1L0,-.4L.6,-1L1,-.6L.4,0L1,.6L.6,1L0,.4L-.6,1L-1,.6L-.4,0Z"  # preemption, as on every chart
CAUSE_SHAPES = {  # of stall marks, in the order of the causes in metrics
    "prefill": "diamond",
    "preemption": _CROSS,
    "kv wait": "square",
    "several": "cross",
    "front end": "triangle-right",
    "client": "triangle-left",
    "unknown": "circle",
}
_WORDS = (  # for these shapes
    marked("diamond"),
    marked("cross"),
    marked("square"),
    marked("plus"),
    marked("triangle right"),
    marked("triangle left"),
    marked("circle"),
)


def cause_words(causes: Iterable[str]) -> str:
    """The shapes of stall marks in words, where there is no legend: those of these causes, in the usual order."""
    there = set(causes)
    named = [pair for pair in zip(CAUSE_SHAPES, _WORDS, strict=True) if pair[0] in there]
    said = [translate("{cause} ({shape})", cause=translate(cause), shape=translate(shape)) for cause, shape in named]
    return translate(", ").join(said)


def draw_stalls(sources: Sources, y: alt.Y, look: Look) -> list[alt.Chart]:
    """Layers of stalls: a whisker over the silence, and a mark where it ended, whose shape is the cause.

    Args:
        sources: ``stalls`` (t, t0, gap, stream and, in a static chart, cause, detail, step), where there are any.
        y: of the chart's gaps.
        look: of the chart.
    """
    if "stalls" not in sources:
        return []
    # In a live chart the cause is not known: it needs all steps of the gap.
    why = [] if look.live else [alt.Tooltip("cause:N"), alt.Tooltip("detail:N"), alt.Tooltip("step:Q")]
    tip = [
        alt.Tooltip("stream:N", title=translate("stall of")),
        alt.Tooltip("gap:Q", title=translate("gap, ms"), format=",.1f"),
        *why,
        alt.Tooltip("t:Q", title=translate("ended, s"), format=".3f"),
    ]
    base = alt.Chart(sources["stalls"]).encode(y=y, tooltip=tip)
    colour = look.palette.alert
    marks = base.mark_point(
        color=colour,
        fill=colour,
        fillOpacity=0.35,
        shape="diamond",
        size=55,
        strokeWidth=1.3,
        opacity=1,
        clip=True,
        aria=False,
    ).encode(x=time_axis("t", look))
    return [
        base.mark_rule(color=colour, strokeWidth=1, opacity=0.45, clip=True, aria=False).encode(
            x=time_axis("t0", look), x2="t:Q"
        ),
        marks if look.live else marks.encode(shape=_causes(sources["stalls"], look)),
    ]


def _causes(stalls: Source, look: Look) -> alt.Shape:
    """A shape for each cause; the legend has those that there are."""
    there = set(stalls["cause"]) if isinstance(stalls, pd.DataFrame) else set(CAUSE_SHAPES)
    names = [name for name in CAUSE_SHAPES if name in there]
    legend = alt.Legend(
        title=translate("stall by"),
        titleOrient="left",
        titlePadding=12,
        symbolFillColor=look.palette.alert,
        symbolStrokeColor=look.palette.alert,
        symbolStrokeWidth=1.3,
    )
    scale = alt.Scale(domain=names, range=[CAUSE_SHAPES[name] for name in names])
    return alt.Shape("cause:N", scale=scale, legend=legend if look.legend else None)
