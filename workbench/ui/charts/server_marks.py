"""How a server's own rates and quantiles are drawn, whether the rows are there or still to come."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt

from workbench.i18n import marked, translate
from workbench.ui.charts.scales import (
    Bound,
    Bounds,
    Sources,
    domain,
    powers,
    root_ticks,
    time_axis,
    y_axis,
    zoomable,
)
from workbench.ui.charts.server_rows import GAP, OUTPUT, PROMPT, QUEUE, TTFT, WHOLE
from workbench.ui.charts.theme import Look

RATES_NAME = marked("Tokens a second, by the server's counters")
QUEUE_NAME = marked("KV use and queue, by the server's /metrics")
LATENCY_NAME = marked("Latencies, by the server's histograms")
RATES_DESCRIPTION = marked(
    "Prompt tokens (dashed) and output tokens (solid) a second between two readings, against time."
)
LATENCY_DESCRIPTION = marked(
    "Quantiles of latencies in seconds on a log axis: a band for the bucket that each lies in, a dot where it is "
    "interpolated."
)
_LABEL_PX = 110  # most that the name of a quantile takes


def draw_rates(sources: Sources, look: Look, *, top: Bound) -> alt.LayerChart:
    """Lay out the chart of rates.

    Args:
        sources: ``rates`` (t, series, rate in tokens a second; t is when the interval ended, null breaks the line).
        look: of the chart.
        top: of the axis, tokens a second.
    """
    colours, names = look.palette, [OUTPUT, PROMPT]
    if "rates" not in sources:
        return alt.layer()
    legend = alt.Legend(title=None, symbolType="stroke") if look.legend else None
    lines = (
        alt.Chart(sources["rates"])
        .mark_line(
            strokeWidth=1.6, interpolate="step-before", invalid="break-paths-show-domains", clip=True, aria=False
        )
        .encode(
            x=time_axis("t", look),
            y=alt.Y(
                "rate:Q",
                scale=alt.Scale(type="sqrt", domain=domain((0, top)), nice=False),
                axis=y_axis(translate("tokens/s (√ scale)"), format=",d", values=root_ticks(top, powers_of_two=True)),
            ),
            color=alt.Color(
                "series:N", scale=alt.Scale(domain=names, range=[colours.decode, colours.prefill]), legend=legend
            ),
            strokeDash=alt.StrokeDash("series:N", scale=alt.Scale(domain=names, range=[[1, 0], [5, 3]]), legend=legend),
            tooltip=[
                alt.Tooltip("series:N", title=translate("tokens of")),
                alt.Tooltip("rate:Q", title=translate("tokens/s"), format=",.1f"),
                alt.Tooltip("t:Q", title=translate("until, s"), format=".2f"),
            ],
        )
    )
    return alt.layer(zoomable(lines, look))


def draw_latency(sources: Sources, look: Look, *, rows: Sequence[str], span: Bounds) -> alt.LayerChart:
    """Lay out the chart of quantiles.

    Args:
        sources: ``quantiles`` (see :func:`~workbench.ui.charts.server_rows.quantile_rows`), ``seen`` (row, value: what
            our client measured, s).
        look: of the chart.
        rows: names of the quantiles, from top to bottom.
        span: domain of the axis, s.
    """
    low, high = span
    y = alt.Y(
        "row:N",
        scale=alt.Scale(domain=list(rows)),
        axis=alt.Axis(title=None, labelLimit=_LABEL_PX, ticks=False, domain=False),
    )
    seconds = alt.Axis(title=translate("s (log)"), values=powers(span), format=",~g", grid=True)
    scale = alt.Scale(type="log", domain=domain(span), nice=False)
    layers = list[alt.Chart]()
    if "quantiles" in sources:
        base = (
            alt.Chart(sources["quantiles"])
            .transform_calculate(begin=f"max(datum.low, {low})", end=f"datum.open ? {high} : max(datum.high, {low})")
            .encode(y=y, color=_colour(look), tooltip=_tip())
        )
        x = alt.X("begin:Q", scale=scale, axis=seconds)
        layers += [
            base.mark_bar(height=9, opacity=0.4, clip=True, aria=False).encode(x=x, x2="end:Q"),
            base.transform_filter("datum.open")
            .mark_point(shape="triangle-right", size=70, filled=True, opacity=1, aria=False)
            .encode(x=alt.X("end:Q", scale=scale, axis=seconds)),
            base.transform_filter("isValid(datum.value)")
            .mark_point(shape="circle", size=55, filled=True, opacity=1, clip=True, aria=False)
            .encode(x=alt.X("value:Q", scale=scale, axis=seconds)),
        ]
    if "seen" in sources:
        layers.append(
            alt.Chart(sources["seen"])
            .mark_point(shape="diamond", size=70, color=look.palette.ink, strokeWidth=1.6, opacity=1, aria=False)
            .encode(
                x=alt.X("value:Q", scale=scale, axis=seconds),
                y=y,
                tooltip=[
                    alt.Tooltip("row:N", title=translate("our client's")),
                    alt.Tooltip("value:Q", title=translate("s"), format=",.4~g"),
                ],
            )
        )
    return alt.layer(*layers)


def _colour(look: Look) -> alt.Color:
    colours = look.palette
    shades = {TTFT: colours.prefill, GAP: colours.decode, QUEUE: colours.muted, WHOLE: colours.kv}
    return alt.Color("what:N", scale=alt.Scale(domain=list(shades), range=list(shades.values())), legend=None)


def _tip() -> list[alt.Tooltip]:
    return [
        alt.Tooltip("row:N", title=translate("quantile")),
        alt.Tooltip("value:Q", title=translate("interpolated, s"), format=",.4~g"),
        alt.Tooltip("low:Q", title=translate("at least, s"), format=",.4~g"),
        alt.Tooltip("high:Q", title=translate("at most, s"), format=",.4~g"),
        alt.Tooltip("count:Q", title=translate("counted"), format=","),
    ]
