"""Knob revisions: a vertical rule across every time chart, with the values on hover."""

from __future__ import annotations

import altair as alt

from workbench.trace import Trace
from workbench.ui.charts.data import decimate, revisions
from workbench.ui.charts.theme import Look, time_axis

RULES = 100  # most rules in one chart


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
        base.mark_text(color=colour, fontSize=10, align="left", baseline="top", dx=3, clip=True, aria=False).encode(
            y=alt.value(1), text="label:N"
        ),
    ]
