"""Model FLOPs utilisation of each step: which share of the device's peak the model's own arithmetic reached."""

from __future__ import annotations

import altair as alt
import pandas as pd

from workbench import metrics
from workbench.i18n import counted, marked, translate
from workbench.metrics.mfu import KINDS, missing, peak_of
from workbench.trace import Trace
from workbench.ui.charts.data import decimate, on_span
from workbench.ui.charts.knobs import RULES, draw_knobs, knob_frames
from workbench.ui.charts.origin import origin
from workbench.ui.charts.scales import time_axis, y_axis, zoomable
from workbench.ui.charts.theme import Look, finish, message_chart

NAME = marked("Model FLOPs utilisation per step")
_SHAPES = {"decode": "circle", "mixed": "diamond", "prefill": "square"}


def mfu_chart(trace: Trace, look: Look | None = None) -> alt.Chart | alt.LayerChart:
    """MFU (%) of every step at its end, by kind of step, with the median of each kind as a dashed line.

    A hollow circle is a step of decodes only, a filled square one of prefill only, and a mark with the outline of the
    one and the filling of the other carried both.

    Args:
        trace: the run; its metadata tell the peak that the steps are held against, which stands in the heading.
        look: size, theme and shared domains (``y_domain`` per cent).
    """
    look = on_span(look or Look(), trace)
    where = origin(trace)
    steps = metrics.mfu(trace)
    steps = steps[steps["mfu"].notna()]
    if steps.empty:
        return message_chart(
            look,
            name=NAME,
            subtitle=where,
            message=translate("No MFU in this trace:\n{reason}.", reason=translate(missing(trace))),
        )
    medians = steps.groupby("kind", observed=True)["mfu"].agg(["median", "size"])
    there = [kind for kind in KINDS if kind in medians.index]
    names = {kind: _named(kind, medians.loc[kind]) for kind in there}
    rules = knob_frames(trace, look)
    kept = decimate(steps, "end_s", ["mfu"], look.limit - RULES * bool(rules) - len(KINDS), by="kind")
    points = pd.DataFrame(
        {
            "t": kept["end_s"].round(4),
            "mfu": (100 * kept["mfu"].astype(float)).round(3),
            "kind": kept["kind"].astype(str).map(names),
            "tokens": kept["tokens"],
            "gflop": (kept["flops"].astype(float) / 1e9).round(3),
            "ms": (1000 * kept["seconds"].astype(float)).round(2),
            "step": kept["step"],
        }
    )
    levels = pd.DataFrame(
        {"mfu": [100 * float(medians["median"][kind]) for kind in there], "kind": [names[kind] for kind in there]}
    )
    top = look.y_domain or (0.0, 1.15 * float(points["mfu"].max()) or 1.0)
    chart = alt.layer(*_points(points, names, top, look), *_levels(levels, names, top, look), *draw_knobs(rules, look))
    lines = [translate("{where} · share of the peak, {peak}", where=where, peak=peak_words(trace))]
    if len(kept) < len(steps):
        lines.append(
            translate("{kept:,} of {all:,} steps drawn: the highest of each bucket", kept=len(kept), all=len(steps))
        )
    return finish(
        chart,
        look,
        name=NAME,
        subtitle=lines,
        description=(
            translate(
                "Points: floating-point work of the model in a step over what the device's peak would do in its time, "
                "against time. {kinds}.",
                kinds=translate("; ").join(names.values()),
            )
        ),
    )


def _named(kind: str, figures: pd.Series) -> str:
    count = counted("{n:,} step", "{n:,} steps", int(figures["size"]))
    median = 100 * figures["median"]
    return translate("{kind} ({count}): median {median:,.1f} %", kind=translate(kind), count=count, median=median)


def peak_words(trace: Trace) -> str:
    """The peak of a trace's device and where the figure comes from."""
    peak = peak_of(trace)
    if peak is None:
        return translate("an unknown peak")
    return f"{float(peak['flops_per_s']) / 1e12:,.3g} TFLOP/s: {peak.get('source') or translate('source not stated')}"


def _y(top: tuple[float, float]) -> alt.Y:
    return alt.Y(
        "mfu:Q",
        scale=alt.Scale(domain=list(top), nice=False),
        axis=y_axis(translate("MFU, % of the peak"), tickCount=4),
    )


def _points(
    points: pd.DataFrame, names: dict[str, str], top: tuple[float, float], look: Look
) -> list[alt.Chart | alt.LayerChart]:
    colours, domain = look.palette, list(names.values())
    outline = {"decode": colours.decode, "mixed": colours.decode, "prefill": colours.prefill}
    filling = {"decode": "transparent", "mixed": colours.prefill, "prefill": colours.prefill}
    legend = alt.Legend(title=None, columns=1 if look.width < 500 else 3, columnPadding=40) if look.legend else None

    def scale(values: dict[str, str]) -> alt.Scale:
        return alt.Scale(domain=domain, range=[values[kind] for kind in names])

    marks = (
        alt.Chart(points)
        .mark_point(size=22, strokeWidth=1.2, opacity=1, clip=True, aria=False)
        .encode(
            x=time_axis("t", look),
            y=_y(top),
            shape=alt.Shape("kind:N", scale=scale(_SHAPES), legend=legend),
            stroke=alt.Stroke("kind:N", scale=scale(outline), legend=legend),
            fill=alt.Fill("kind:N", scale=scale(filling), legend=legend),
            tooltip=[
                alt.Tooltip("kind:N"),
                alt.Tooltip("mfu:Q", title=translate("MFU, %"), format=".2f"),
                alt.Tooltip("tokens:Q", format=","),
                alt.Tooltip("gflop:Q", title=translate("work, GFLOP"), format=",.2f"),
                alt.Tooltip("ms:Q", title=translate("step time, ms"), format=",.1f"),
                alt.Tooltip("step:Q"),
            ],
        )
    )
    return [zoomable(marks, look)]


def _levels(levels: pd.DataFrame, names: dict[str, str], top: tuple[float, float], look: Look) -> list[alt.Chart]:
    """The median of each kind; its figure stands in the legend, where none can lie on another."""
    dashes = {"decode": [2, 3], "mixed": [6, 3, 2, 3], "prefill": [7, 4]}
    layers = []
    for kind, name in names.items():
        colour = look.palette.decode if kind == "decode" else look.palette.prefill
        if kind == "mixed":
            colour = look.palette.ink
        layers.append(
            alt.Chart(levels[levels["kind"] == name])
            .mark_rule(color=colour, strokeDash=dashes[kind], strokeWidth=1.3, aria=False)
            .encode(y=_y(top), tooltip=["kind:N"])
        )
    return layers
