"""Memory peak of a step against the tokens in it."""

from __future__ import annotations

from collections.abc import Mapping

import altair as alt
import numpy as np
import pandas as pd

from workbench.i18n import counted, marked, translate
from workbench.metrics import MemoryFit, memory_fit, pooled
from workbench.trace import Trace
from workbench.ui.charts.data import decimate, timeline
from workbench.ui.charts.memory import MISSING
from workbench.ui.charts.origin import origin, why_missing
from workbench.ui.charts.scales import root_ticks, y_axis
from workbench.ui.charts.theme import SHAPES, Look, finish, message_chart
from workbench.units import MIB

NAME = marked("Memory peak against tokens in the step")


def memory_scatter(traces: Mapping[str, Trace], look: Look | None = None) -> alt.Chart | alt.LayerChart:
    """Activation peak (MiB) of every step against the tokens in it, over one or several runs of one engine.

    Both axes are square roots, which spreads the small steps out and still draws "twice the tokens, twice the memory"
    as a straight line through zero.

    A power is fitted through the largest peaks of all runs; its exponent is in the heading (1 is straight, 2 square).

    Args:
        traces: setting's name → its run; each has a shape of its own (as far as there are shapes).
        look: size and theme; ``x_domain`` is tokens, ``y_domain`` MiB.
    """
    look = look or Look(height=300)
    where = translate(" and ").join(dict.fromkeys(origin(trace) for trace in traces.values())) or translate("no run")
    frames = []
    for name, trace in traces.items():
        steps = timeline(trace)
        steps = steps[steps["activation_mib"].notna()]
        frames.append(steps[["tokens", "activation_mib", "step", "ms"]].assign(setting=name))
    points = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame()
    if points.empty:
        reason = why_missing(next(iter(traces.values())), MISSING) if traces else translate(MISSING)
        return message_chart(look, name=NAME, subtitle=where, message=reason)
    fit = _fit(traces)
    kept = decimate(points, "tokens", ["activation_mib"], look.limit - 40, by="setting")
    names = list(traces)
    right = look.x_domain or (0.0, 1.05 * float(points["tokens"].max()))
    top = look.y_domain or (0.0, 1.1 * float(points["activation_mib"].max()) or 1.0)
    x = alt.X(
        "tokens:Q",
        scale=alt.Scale(type="sqrt", domain=list(right), nice=False),
        axis=alt.Axis(
            title=translate("tokens in the step (√ scale)"),
            format=",d",
            grid=True,
            values=root_ticks(right[1], powers_of_two=True),
        ),
    )
    y = alt.Y(
        "activation_mib:Q",
        scale=alt.Scale(type="sqrt", domain=list(top), nice=False),
        axis=y_axis(translate("activation peak, MiB (√ scale)"), format=",.3~f", values=root_ticks(top[1])),
    )
    dots = (
        alt.Chart(kept.round({"activation_mib": 3, "ms": 2}))
        .mark_point(
            color=look.palette.memory,
            filled=False,
            strokeWidth=1.6,
            opacity=1,
            strokeOpacity=0.9,
            size=46,
            clip=True,
            aria=False,
        )
        .encode(
            x=x,
            y=y,
            shape=alt.Shape(
                "setting:N",
                scale=alt.Scale(domain=names, range=[SHAPES[n % len(SHAPES)] for n in range(len(names))]),
                legend=alt.Legend(title=None, columns=3) if look.legend and len(names) > 1 else None,
            ),
            tooltip=[
                alt.Tooltip("setting:N"),
                alt.Tooltip("tokens:Q", title=translate("tokens in the step"), format=","),
                alt.Tooltip("activation_mib:Q", title=translate("activation peak, MiB"), format=",.2f"),
                alt.Tooltip("ms:Q", title=translate("step time, ms"), format=",.1f"),
                alt.Tooltip("step:Q"),
            ],
        )
    )
    layers = [dots]
    words = counted("{n:,} step", "{n:,} steps", len(points))
    if fit is not None:
        tokens = np.linspace(fit.min_tokens, fit.max_tokens, 40)
        curve = pd.DataFrame({"tokens": tokens.round(1), "activation_mib": [fit.bytes_at(n) / MIB for n in tokens]})
        layers.append(
            alt.Chart(curve.round(3))
            .mark_line(color=look.palette.ink, strokeDash=[5, 4], strokeWidth=1.2, clip=True, aria=False)
            .encode(x=x, y=y)
        )
        words += translate(
            " · dashed: peak grows with tokens^{exponent:.2f} (95 % interval {low:.2f} to {high:.2f})",
            exponent=fit.exponent,
            low=fit.low,
            high=fit.high,
        )
    lines = [f"{where} · {words}"]
    if len(kept) < len(points):
        lines.append(translate("{kept:,} steps drawn: the largest peak of each bucket of tokens", kept=len(kept)))
    return finish(
        alt.layer(*layers),
        look,
        name=NAME,
        subtitle=lines,
        description=translate(
            "Points: activation memory peak of a step against the tokens it ran, one shape a setting."
        ),
    )


def _fit(traces: Mapping[str, Trace]) -> MemoryFit | None:
    """One fit through the steps of all runs."""
    return memory_fit(pooled(traces.values())) if traces else None
