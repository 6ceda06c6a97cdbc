"""Token gaps of each stream against time: where the output stood still, and for how long."""

from __future__ import annotations

from collections.abc import Iterable

import altair as alt
import numpy as np
import pandas as pd

from workbench import metrics
from workbench.config import SLO
from workbench.i18n import counted, translate
from workbench.metrics.requests import LONG_PROMPT
from workbench.trace import Trace
from workbench.ui.charts.data import decimate, long_prefills, on_span
from workbench.ui.charts.gap_marks import NAME, SHORTEST, draw_gaps, prefill_words, readable, shortest_told
from workbench.ui.charts.knobs import RULES, knob_frames
from workbench.ui.charts.origin import origin
from workbench.ui.charts.scales import decades, present
from workbench.ui.charts.theme import Look, finish, message_chart

STREAMS = 6  # up to so many streams have a shape each; beyond, each class has one
STALLS = 300  # most stalls that are marked; the longest of each bucket


def gap_chart(
    trace: Trace, slo: SLO, look: Look | None = None, *, long_tokens: int = LONG_PROMPT
) -> alt.Chart | alt.LayerChart:
    """Every token gap (ms, log) at the moment it ended.

    A stall is a filled mark with a whisker back to the moment the stream fell silent; its shape is its cause, which is
    told on hover. The SLO is a dashed line, the prefill of a long prompt is shaded, a knob revision is a dotted rule.

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
            look,
            name=NAME,
            subtitle=origin(trace),
            message=translate("No token gaps in this trace:\nno stream got two outputs."),
        )
    stalls = metrics.stalls(trace, slo)
    marked = decimate(stalls, "at_s", ["gap_ms"], STALLS)
    shades = _shades(decimate(long_prefills(trace, long_tokens), "start", ["prompt_tokens"], RULES))
    named = readable(list(shades.itertuples(index=False, name=None)), *(look.x_domain or (0.0, 1.0)), look.width)
    rules = knob_frames(trace, look)
    by = "request" if gaps["request"].nunique() <= STREAMS else "class"
    gaps["series"] = gaps[by].astype(object).fillna("unknown").astype(str)
    room = look.limit - len(marked) - len(shades) - RULES * bool(rules) - 2
    kept = decimate(gaps, "at_s", ["gap_ms"], room, by="series")
    points = _points(kept)
    chart = draw_gaps(
        present(
            shades=shades,
            shade_labels=shades.iloc[list(named)].assign(line=list(named.values())),
            gaps=points,
            stalls=_stalls(marked),
            longest=_longest(gaps),
        )
        | rules,
        look,
        slo=slo,
        domain=look.y_domain or _domain([gaps["gap_ms"]], slo),
        series="class" if "class" in points else "stream",
        names=sorted(kept["series"].unique()),
        engine=bool(points["engine"].notna().any()),
    )
    top = gaps["gap_ms"].max()
    p50, p99 = np.percentile(gaps["gap_ms"], (50, 99))
    stood = counted("{n:,} stall", "{n:,} stalls", len(stalls))
    figures = translate("P50 {p50:,.0f} · P99 {p99:,.0f} · max {top:,.0f} ms", p50=p50, p99=p99, top=top)
    lines = [" · ".join([origin(trace), translate("{count:,} gaps", count=len(gaps)), figures, stood])]
    if len(kept) < len(gaps):
        lines.append(
            translate("{kept:,} of {all:,} gaps drawn: the longest of each bucket", kept=len(kept), all=len(gaps))
        )
    if look.legend:
        marks = translate("filled, with a whisker: stall and the silence before it · ") if len(stalls) else ""
        lines.append(marks + translate("shaded: prefill of a long prompt · dotted: knobs"))
    return finish(
        chart,
        look,
        name=NAME,
        subtitle=lines,
        description=(
            translate("Points: time between two outputs of one stream, in ms on a log axis, against the time it ended.")
            + translate(" {stalls} above the promise of {gap:,.0f} ms.", stalls=stood.capitalize(), gap=slo.gap_ms)
        ),
    )


def gap_domain(traces: Iterable[Trace], slo: SLO) -> tuple[float, float]:
    """What holds the gaps of all these runs and the SLO, ms: one scale for several charts."""
    return _domain([metrics.gaps(trace)["gap_ms"] for trace in traces], slo)


def _domain(gaps: list[pd.Series], slo: SLO) -> tuple[float, float]:
    """From the decade of the shortest to tell (shorter ones lie on the edge) to well above the longest, for labels."""
    pooled = pd.concat([*gaps, pd.Series([slo.gap_ms])]).astype(float).clip(lower=SHORTEST)
    low = shortest_told(*np.percentile(pooled, (1, 50)))
    return (decades(pd.Series([low]))[0], float(f"{5 * pooled.max():.3g}"))


def _points(kept: pd.DataFrame) -> pd.DataFrame:
    rows = pd.DataFrame(
        {
            "t": kept["at_s"].round(4),
            "gap": kept["gap_ms"].clip(lower=SHORTEST).round(2),
            "engine": kept["engine_gap_ms"].round(2),
            "stream": kept["request"].astype(str),
            "n": kept["n"],
        }
    )
    return rows if (rows["stream"] == kept["series"]).all() else rows.assign(**{"class": kept["series"]})


def _stalls(marked: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "t": marked["at_s"].round(4),
            "t0": (marked["at_s"] - marked["gap_ms"] / 1000).round(4),
            "gap": marked["gap_ms"].clip(lower=SHORTEST).round(2),
            "stream": marked["request"].astype(str),
            "cause": marked["cause"],
            "detail": [translate(detail or "") for detail in marked["detail"]],
            "step": marked["step"].to_numpy(dtype=float, na_value=np.nan),
        }
    )


def _longest(gaps: pd.DataFrame) -> pd.DataFrame:
    """The longest gap, with its figure."""
    worst = gaps.loc[gaps["gap_ms"].idxmax()]
    return pd.DataFrame(
        {
            "t": [worst["at_s"]],
            "gap": [max(round(float(worst["gap_ms"]), 2), SHORTEST)],
            "label": [translate("max {gap:,.0f} ms", gap=worst["gap_ms"])],
        }
    )


def _shades(spans: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "t": spans["start"].round(4),
            "t2": spans["end"].round(4),
            "what": [
                prefill_words(str(request), int(tokens), None if pd.isna(steps) else int(steps))
                for request, tokens, steps in zip(spans["request"], spans["prompt_tokens"], spans["steps"], strict=True)
            ],
        }
    )
