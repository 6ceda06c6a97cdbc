"""Knob revisions: a vertical rule across every time chart, with the values on hover."""

from __future__ import annotations

import altair as alt
import pandas as pd

from workbench.trace import Trace
from workbench.ui.charts.data import decimate, revisions
from workbench.ui.charts.theme import Look, time_axis

RULES = 100  # most rules in one chart
_LABEL_WIDTH = 40  # pixels that a revision's name takes


def knob_rules(trace: Trace, look: Look) -> list[alt.Chart]:
    """Layers that mark each knob revision of ``trace``; none when the trace has no knobs."""
    frame = revisions(trace, look.x_domain[0] if look.x_domain else 0.0)
    if frame.empty:
        return []
    frame = decimate(frame, "t", ["revision"], RULES)
    tip = [
        alt.Tooltip("label:N", title="knobs"),
        alt.Tooltip("t:Q", title="in force from, s", format=".3f"),
        alt.Tooltip("policy:N"),
        alt.Tooltip("budget:Q", title="budget, tokens", format=","),
        alt.Tooltip("chunk:N", title="chunk, tokens"),
        alt.Tooltip("running cap:Q"),
        alt.Tooltip("prefill every:N"),
    ]
    colour = look.palette.muted
    base = alt.Chart(frame).encode(x=time_axis("t", look), tooltip=tip)
    return [
        base.mark_rule(color=colour, strokeDash=[1, 3], strokeWidth=1.5, clip=True, aria=False),
        base.mark_rule(color=colour, strokeWidth=11, opacity=0, clip=True, aria=False),  # easier to hit
        alt.Chart(_readable(frame, look))
        .mark_text(color=colour, fontSize=10, align="left", baseline="top", dx=3, clip=True, aria=False)
        .encode(x=time_axis("t", look), y=alt.value(1), text="label:N"),
    ]


def _readable(frame: pd.DataFrame, look: Look) -> pd.DataFrame:
    """The revisions whose names fit: of those that stand too close together, the last one."""
    low, high = look.x_domain or (float(frame["t"].min()), float(frame["t"].max()))
    room = (high - low) * _LABEL_WIDTH / look.width
    ahead = frame["t"].shift(-1) - frame["t"]
    return frame[ahead.isna() | (ahead >= room)]
