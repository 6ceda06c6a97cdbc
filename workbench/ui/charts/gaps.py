"""Token gaps of each stream against time: where the output stood still, and for how long."""

from __future__ import annotations

from collections.abc import Iterable

import altair as alt
import numpy as np
import pandas as pd

from workbench import metrics
from workbench.config import SLO
from workbench.metrics.requests import LONG_PROMPT
from workbench.trace import Trace
from workbench.ui.charts.data import decimate, long_prefills, on_span
from workbench.ui.charts.knobs import RULES, knob_rules
from workbench.ui.charts.origin import origin
from workbench.ui.charts.theme import (
    SHAPES,
    Look,
    decades,
    finish,
    message_chart,
    powers,
    time_axis,
    y_axis,
    zoomable,
)

NAME = "Token gaps"
STREAMS = 6  # up to so many streams have a shape each; beyond, each class has one
SHORTEST = 0.01  # ms; shorter gaps are drawn as this, since a log axis has no zero
STALLS = 300  # most stalls that are marked; the longest of each bucket


def gap_chart(
    trace: Trace, slo: SLO, look: Look | None = None, *, long_tokens: int = LONG_PROMPT
) -> alt.Chart | alt.LayerChart:
    """Every token gap (ms, log) at the moment it ended.

    A stall is a diamond with a whisker back to the moment the stream fell silent; its cause is on hover. The SLO is a
    dashed line, the prefill of a long prompt is shaded, a knob revision is a dotted rule.

    Args:
        trace: the run.
        slo: the promise that makes a gap a stall.
        look: size, theme and shared domains (``y_domain`` ms).
        long_tokens: a prompt of this length or more is long.
    """
    look = on_span(look or Look(), trace)
    gaps = metrics.gaps(trace)
    if gaps.empty:
        return message_chart(
            look, name=NAME, subtitle=origin(trace), message="No token gaps in this trace:\nno stream got two outputs."
        )
    stalls = metrics.stalls(trace, slo)
    marked = decimate(stalls, "at_s", ["gap_ms"], STALLS)
    shades = decimate(long_prefills(trace, long_tokens), "start", ["prompt_tokens"], RULES)
    rules = knob_rules(trace, look)
    series = "request" if gaps["request"].nunique() <= STREAMS else "class"
    gaps["series"] = gaps[series].astype(object).fillna("unknown").astype(str)
    room = look.limit - len(marked) - len(shades) - RULES * bool(rules) - 2
    kept = decimate(gaps, "at_s", ["gap_ms"], room, by="series")
    domain = look.y_domain or _domain([gaps["gap_ms"]], slo)
    y = alt.Y(
        "gap:Q",
        scale=alt.Scale(type="log", domain=list(domain), nice=False, clamp=True),
        axis=y_axis("gap, ms (log)", format=",~f", values=powers(domain)),
    )
    chart = alt.layer(
        *_shading(shades, look),
        *_promise(slo, y, look),
        zoomable(_points(kept, y, look), look),
        *_stalls(marked, y, look),
        *_longest(gaps, domain, y, look),
        *rules,
    )
    top = gaps["gap_ms"].max()
    p50, p99 = np.percentile(gaps["gap_ms"], (50, 99))
    stood = f"{len(stalls):,} stall{'' if len(stalls) == 1 else 's'}"
    figures = f"P50 {p50:,.0f} · P99 {p99:,.0f} · max {top:,.0f} ms"
    lines = [f"{origin(trace)} · {len(gaps):,} gaps · {figures} · {stood}"]
    if len(kept) < len(gaps):
        lines.append(f"{len(kept):,} of {len(gaps):,} gaps drawn: the longest of each bucket")
    if look.legend:
        lines.append("diamond: stall, with the silence before it · shaded: prefill of a long prompt · dotted: knobs")
    return finish(
        chart,
        look,
        name=NAME,
        subtitle=lines,
        description=(
            f"Points: time between two outputs of one stream, in ms on a log axis, against the time it ended. "
            f"{stood.capitalize()} above the promise of {slo.gap_ms:,.0f} ms."
        ),
    )


def gap_domain(traces: Iterable[Trace], slo: SLO) -> tuple[float, float]:
    """What holds the gaps of all these runs and the SLO, ms: one scale for several charts."""
    return _domain([metrics.gaps(trace)["gap_ms"] for trace in traces], slo)


def _domain(gaps: list[pd.Series], slo: SLO) -> tuple[float, float]:
    """From the decade below nearly all gaps (shorter ones lie on the edge) to well above the longest, for labels."""
    pooled = pd.concat([*gaps, pd.Series([slo.gap_ms])]).astype(float).clip(lower=SHORTEST)
    return (decades(pd.Series([np.percentile(pooled, 1)]))[0], float(f"{5 * pooled.max():.3g}"))


def _points(kept: pd.DataFrame, y: alt.Y, look: Look) -> alt.Chart:
    names = sorted(kept["series"].unique())
    rows = pd.DataFrame(
        {
            "t": kept["at_s"].round(4),
            "gap": kept["gap_ms"].clip(lower=SHORTEST).round(2),
            "engine": kept["engine_gap_ms"].round(2),
            "stream": kept["request"].astype(str),
            "n": kept["n"],
        }
    )
    if not (rows["stream"] == kept["series"]).all():
        rows["class"] = kept["series"]
    series = "class" if "class" in rows else "stream"
    engine = [alt.Tooltip("engine:Q", title="engine gap, ms", format=",.1f")] if rows["engine"].notna().any() else []
    return (
        alt.Chart(rows)
        .mark_point(
            color=look.palette.decode,
            filled=False,
            strokeWidth=1.1,
            size=16,
            opacity=1,
            strokeOpacity=0.8,
            clip=True,
            aria=False,
        )
        .encode(
            x=time_axis("t", look),
            y=y,
            shape=alt.Shape(
                f"{series}:N",
                scale=alt.Scale(domain=names, range=[SHAPES[n % len(SHAPES)] for n in range(len(names))]),
                legend=alt.Legend(title=None, symbolStrokeColor=look.palette.decode) if look.legend else None,
            ),
            tooltip=[
                alt.Tooltip("stream:N"),
                alt.Tooltip("gap:Q", title="gap, ms", format=",.1f"),
                *engine,
                alt.Tooltip("n:Q", title="tokens that ended it"),
                alt.Tooltip("t:Q", title="ended, s", format=".3f"),
            ],
        )
    )


def _stalls(marked: pd.DataFrame, y: alt.Y, look: Look) -> list[alt.Chart]:
    if marked.empty:
        return []
    rows = pd.DataFrame(
        {
            "t": marked["at_s"].round(4),
            "t0": (marked["at_s"] - marked["gap_ms"] / 1000).round(4),
            "gap": marked["gap_ms"].clip(lower=SHORTEST).round(2),
            "stream": marked["request"].astype(str),
            "cause": marked["cause"],
            "detail": marked["detail"],
        }
    )
    tip = [
        alt.Tooltip("stream:N", title="stall of"),
        alt.Tooltip("gap:Q", title="gap, ms", format=",.1f"),
        alt.Tooltip("cause:N"),
        alt.Tooltip("detail:N"),
        alt.Tooltip("t:Q", title="ended, s", format=".3f"),
    ]
    base = alt.Chart(rows).encode(y=y, tooltip=tip)
    colour = look.palette.alert
    return [
        base.mark_rule(color=colour, strokeWidth=1, opacity=0.45, clip=True, aria=False).encode(
            x=time_axis("t0", look), x2="t:Q"
        ),
        base.mark_point(
            color=colour,
            fill=colour,
            fillOpacity=0.35,
            shape="diamond",
            size=55,
            strokeWidth=1.3,
            opacity=1,
            clip=True,
            aria=False,
        ).encode(x=time_axis("t", look)),
    ]


def _longest(gaps: pd.DataFrame, domain: tuple[float, float], y: alt.Y, look: Look) -> list[alt.Chart]:
    """The longest gap, with its figure."""
    worst = gaps.loc[gaps["gap_ms"].idxmax()]
    low, high = look.x_domain or (0.0, float(gaps["at_s"].max()))
    late = worst["at_s"] > low + 0.5 * (high - low)
    rows = pd.DataFrame({"t": [worst["at_s"]], "gap": [max(round(float(worst["gap_ms"]), 2), SHORTEST)]})
    near_top = worst["gap_ms"] > domain[1] * 0.6
    text = alt.Chart(rows).mark_text(
        color=look.palette.ink,
        fontSize=11,
        fontWeight=600,
        align="right" if late else "left",
        baseline="top" if near_top else "bottom",
        dx=-7 if late else 7,
        dy=5 if near_top else -5,
        clip=True,
        aria=False,
    )
    return [text.encode(x=time_axis("t", look), y=y, text=alt.value(f"max {worst['gap_ms']:,.0f} ms"))]


def _promise(slo: SLO, y: alt.Y, look: Look) -> list[alt.Chart]:
    rows = alt.Chart(pd.DataFrame({"gap": [slo.gap_ms]})).encode(y=y)
    colour = look.palette.alert
    return [
        rows.mark_rule(color=colour, strokeDash=[6, 4], strokeWidth=1.2, aria=False),
        rows.mark_text(color=colour, fontSize=10, align="right", baseline="bottom", dy=-2, aria=False).encode(
            x=alt.value(look.width), text=alt.value(f"SLO {slo.gap_ms:,.0f} ms")
        ),
    ]


def _shading(shades: pd.DataFrame, look: Look) -> list[alt.Chart]:
    if shades.empty:
        return []
    steps = [f" in {n:,.0f} step{'' if n == 1 else 's'}" if pd.notna(n) else " (sent → first)" for n in shades["steps"]]
    rows = pd.DataFrame(
        {
            "t": shades["start"].round(4),
            "t2": shades["end"].round(4),
            "what": [f"{r}: {n:,.0f} tokens" for r, n in zip(shades["request"], shades["prompt_tokens"], strict=True)],
        }
    )
    rows["what"] += steps
    colour, label = look.palette.prefill, {"color": look.palette.ink, "fontSize": 10, "baseline": "top", "clip": True}
    layers = [
        alt.Chart(rows)
        .mark_rect(color=colour, opacity=0.2, clip=True, aria=False)
        .encode(x=time_axis("t", look), x2="t2:Q", tooltip=[alt.Tooltip("what:N", title="prefill of")])
    ]
    middle = sum(look.x_domain or (0.0, 0.0)) / 2
    for late in (False, True):  # a label that would leave the plot ends at its span instead of beginning there
        some = rows[(rows["t"] > middle) == late]
        if len(some) and len(rows) <= 8:
            text = alt.Chart(some).mark_text(
                align="right" if late else "left", dx=-4 if late else 4, aria=False, **label
            )
            layers.append(text.encode(x=time_axis("t2" if late else "t", look), y=alt.value(15), text="what:N"))
    return layers
