"""How KV use and the queue are drawn, whether the rows are there or still to come."""

from __future__ import annotations

import altair as alt

from workbench.i18n import marked, translate
from workbench.ui.charts.knobs import draw_knobs
from workbench.ui.charts.scales import Bounds, Sources, domain, right_axis, time_axis, y_axis, zoomable
from workbench.ui.charts.theme import Look

NAME = marked("KV use and queue")
RUNNING, WAITING = marked("running"), marked("waiting")
DESCRIPTION = marked(
    "KV blocks in use as an area, running (solid) and waiting (dashed) requests as lines, "
    "preemptions as crosses, against time."
)


def draw_queue(sources: Sources, look: Look, *, span: Bounds, requests: Bounds) -> alt.LayerChart:
    """Lay out the queue chart.

    Args:
        sources: ``kv`` (t, kv in per cent), ``requests`` (t, series, requests), ``losses`` (t, victims, who) and those
            of :func:`~workbench.ui.charts.knobs.draw_knobs`.
        look: of the chart.
        span: domain of the axis of KV use, per cent.
        requests: domain of the axis of requests.
    """
    left = alt.layer(*_kv(sources, look, span), *draw_knobs(sources, look), *_crosses(sources, look))
    return alt.layer(left, *_lines(sources, look, requests)).resolve_scale(y="independent")


def _kv(sources: Sources, look: Look, span: Bounds) -> list[alt.Chart]:
    if "kv" not in sources:
        return []
    area = (
        alt.Chart(sources["kv"])
        .mark_area(
            color=look.palette.kv,
            opacity=0.35,
            line={"color": look.palette.kv, "strokeWidth": 1},
            interpolate="step-after",
            clip=True,
            aria=False,
        )
        .encode(
            x=time_axis("t", look),
            y=alt.Y(
                "kv:Q",
                scale=alt.Scale(domain=domain(span)),
                axis=y_axis(translate("KV in use, % (area)"), tickCount=4),
            ),
            tooltip=[
                alt.Tooltip("kv:Q", title=translate("KV in use, %")),
                alt.Tooltip("t:Q", title=translate("at, s"), format=".3f"),
            ],
        )
    )
    return [zoomable(area, look)]


def _lines(sources: Sources, look: Look, requests: Bounds) -> list[alt.Chart]:
    if "requests" not in sources:
        return []
    colours, names = look.palette, [RUNNING, WAITING]
    legend = alt.Legend(title=None, symbolType="stroke") if look.legend else None
    lines = (
        alt.Chart(sources["requests"])
        .mark_line(strokeWidth=1.4, interpolate="step-after", clip=True, aria=False)
        .encode(
            x=time_axis("t", look),
            y=alt.Y(
                "requests:Q",
                scale=alt.Scale(domain=domain(requests), nice=False),
                axis=right_axis(translate("requests (lines)"), look, tickMinStep=1, tickCount=4),
            ),
            color=alt.Color(
                "series:N", scale=alt.Scale(domain=names, range=[colours.ink, colours.muted]), legend=legend
            ),
            strokeDash=alt.StrokeDash("series:N", scale=alt.Scale(domain=names, range=[[1, 0], [4, 3]]), legend=legend),
        )
    )
    return [lines]


def _crosses(sources: Sources, look: Look) -> list[alt.Chart]:
    if "losses" not in sources:
        return []
    crosses = (
        alt.Chart(sources["losses"])
        .mark_point(
            shape="M-1,-1L1,1M1,-1L-1,1",
            color=look.palette.alert,
            strokeWidth=2,
            size=60,
            opacity=1,
            clip=True,
            aria=False,
        )
        .encode(
            x=time_axis("t", look),
            y=alt.value(10),
            tooltip=[
                alt.Tooltip("victims:Q", title=translate("preempted")),
                alt.Tooltip("who:N", title=translate("requests")),
                alt.Tooltip("t:Q", title=translate("at, s"), format=".3f"),
            ],
        )
    )
    return [crosses]
