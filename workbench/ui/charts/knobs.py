"""Knob revisions as vertical rules, the same on every time chart."""

from __future__ import annotations

import altair as alt
import pandas as pd

from workbench.i18n import translate
from workbench.trace import Trace
from workbench.ui.charts.data import decimate, revisions
from workbench.ui.charts.scales import Source, Sources, edges, time_axis
from workbench.ui.charts.theme import Look

RULES = 100  # most rules in one chart
LABEL_WIDTH = 40  # px that a revision's name takes


def knob_frames(trace: Trace, look: Look) -> dict[str, Source]:
    """Rows of :func:`draw_knobs`; none when the trace has no knobs."""
    frame = revisions(trace, look.x_domain[0] if look.x_domain else 0.0)
    if frame.empty:
        return {}
    frame = decimate(frame, "t", ["revision"], RULES)
    return {"rules": frame, "rule_labels": _readable(frame, look)}


def draw_knobs(sources: Sources, look: Look) -> list[alt.Chart]:
    """Layers that mark each knob revision, where there are any.

    Args:
        sources: ``rules`` (t, and the fields of :func:`~workbench.ui.charts.data.revisions`) and ``rule_labels``, those
            of them whose names fit.
        look: of the chart.
    """
    if "rules" not in sources:
        return []
    tip = [
        alt.Tooltip("label:N", title=translate("knobs")),
        alt.Tooltip("t:Q", title=translate("in force from, s"), format=".3f"),
        alt.Tooltip("policy:N"),
        alt.Tooltip("budget:Q", title=translate("budget, tokens"), format=","),
        alt.Tooltip("chunk:N", title=translate("chunk, tokens")),
        alt.Tooltip("running cap:Q"),
        alt.Tooltip("prefill every:N"),
        alt.Tooltip("also:N"),
    ]
    colour = look.palette.muted
    rules, x = _placed(alt.Chart(sources["rules"]), look)
    base = rules.encode(x=x, tooltip=tip)
    labels, x = _placed(alt.Chart(sources["rule_labels"]), look)
    return [
        base.mark_rule(color=colour, strokeDash=[1, 3], strokeWidth=1.5, clip=True, aria=False),
        base.mark_rule(color=colour, strokeWidth=11, opacity=0, clip=True, aria=False),  # easier to hit
        labels.mark_text(color=colour, fontSize=10, align="left", baseline="top", dx=3, clip=True, aria=False).encode(
            x=x, y=alt.value(1), text="label:N"
        ),
    ]


def _placed(chart: alt.Chart, look: Look) -> tuple[alt.Chart, alt.X]:
    """Where a rule stands: in a live chart the revision in force moves along at the left edge."""
    if not look.live:
        return chart, time_axis("t", look)
    return chart.transform_calculate(at=f"max(datum.t, {edges(look)[0]})"), time_axis("at", look)


def _readable(frame: pd.DataFrame, look: Look) -> pd.DataFrame:
    """The revisions whose names fit: of those that stand too close together, the last one."""
    low, high = look.x_domain or (float(frame["t"].min()), float(frame["t"].max()))
    room = (high - low) * LABEL_WIDTH / look.width
    ahead = frame["t"].shift(-1) - frame["t"]
    return frame[ahead.isna() | (ahead >= room)]
