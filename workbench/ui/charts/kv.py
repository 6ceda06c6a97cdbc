"""KV use, running and waiting requests, preemptions."""

from __future__ import annotations

import altair as alt
import pandas as pd

from workbench.trace import Trace
from workbench.ui.charts.data import decimate, known, on_span, timeline
from workbench.ui.charts.knobs import RULES, knob_rules
from workbench.ui.charts.origin import origin, why_missing
from workbench.ui.charts.theme import Look, finish, message_chart, time_axis, y_axis, zoomable

NAME = "KV use and queue"
RUNNING, WAITING = "running", "waiting"
CROSSES = 200  # most preemptions that are marked
_COLUMNS = {"kv_use": "KV use", "running": RUNNING, "waiting": WAITING, "preempted": "preemptions"}


def queue_chart(trace: Trace, look: Look | None = None) -> alt.Chart | alt.LayerChart:
    """KV blocks in use (%, area), running and waiting requests (lines), preemptions (crosses), against time.

    Args:
        trace: the run.
        look: size, theme and shared domains (``y_domain`` per cent, ``y2_domain`` requests).
    """
    look = on_span(look or Look(), trace)
    steps = timeline(trace)
    where = origin(trace)
    lacking = [text for column, text in _COLUMNS.items() if not known(steps, column)]
    if len(lacking) == len(_COLUMNS):
        return message_chart(look, name=NAME, subtitle=where, message=why_missing(trace, "No KV use and no queue"))
    steps = steps.assign(
        kv=steps["kv_use"].astype(float) * 100,
        running=steps["running"].astype(float),
        waiting=steps["waiting"].astype(float),
        victims=steps["preempted"].map(lambda ids: 0 if ids is None else len(ids)),
    )
    rules = knob_rules(trace, look)
    losses = decimate(steps[steps["victims"] > 0], "start", ["victims"], CROSSES)
    room = look.limit - RULES * bool(rules) - len(losses)
    kept = decimate(steps, "start", ["kv", RUNNING, WAITING], room // 3)
    layers: list[alt.Chart | alt.LayerChart] = [*rules]
    if len(losses):
        layers.append(_crosses(losses, look))
    shown = kept[kept["kv"].notna()]
    area = pd.DataFrame({"t": shown["start"].round(4), "kv": shown["kv"].round(2)})
    layers.insert(0, zoomable(_kv(area, look), look))
    lines = kept.melt("start", [RUNNING, WAITING], "series", "requests").dropna()
    second = [_lines(lines.rename(columns={"start": "t"}).round({"t": 4}), look)] if len(lines) else []
    chart = alt.layer(alt.layer(*layers), *second).resolve_scale(y="independent")
    words = [where]
    if "KV use" not in lacking:
        words.append(f"KV use up to {steps['kv'].max():.0f} %")
    if "preemptions" not in lacking:
        words.append(f"{int(steps['victims'].sum()):,} preemptions")
    subtitle = [" · ".join(words)]
    if lacking:
        subtitle.append(f"not recorded: {', '.join(lacking)}")
    if len(kept) < len(steps):
        subtitle.append(f"{len(kept):,} of {len(steps):,} steps drawn: the largest of each bucket")
    return finish(
        chart,
        look,
        name=NAME,
        subtitle=subtitle,
        description="KV blocks in use as an area, running (solid) and waiting (dashed) requests as lines, "
        "preemptions as crosses, against time.",
    )


def _kv(area: pd.DataFrame, look: Look) -> alt.Chart:
    domain = list(look.y_domain or (0, 100))
    return (
        alt.Chart(area)
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
                scale=alt.Scale(domain=domain),
                axis=y_axis("KV in use, % (area)", tickCount=4),
            ),
            tooltip=[alt.Tooltip("kv:Q", title="KV in use, %"), alt.Tooltip("t:Q", title="at, s", format=".3f")],
        )
    )


def _lines(lines: pd.DataFrame, look: Look) -> alt.Chart:
    colours = look.palette
    domain = list(look.y2_domain or (0, 1.2 * max(1.0, float(lines["requests"].max()))))
    names = [RUNNING, WAITING]
    legend = alt.Legend(title=None, symbolType="stroke") if look.legend else None
    return (
        alt.Chart(lines)
        .mark_line(strokeWidth=1.4, interpolate="step-after", clip=True, aria=False)
        .encode(
            x=time_axis("t", look),
            y=alt.Y(
                "requests:Q",
                scale=alt.Scale(domain=domain, nice=False),
                axis=alt.Axis(title="requests (lines)", orient="right", grid=False, tickMinStep=1, tickCount=4),
            ),
            color=alt.Color(
                "series:N", scale=alt.Scale(domain=names, range=[colours.ink, colours.muted]), legend=legend
            ),
            strokeDash=alt.StrokeDash("series:N", scale=alt.Scale(domain=names, range=[[1, 0], [4, 3]]), legend=legend),
        )
    )


def _crosses(losses: pd.DataFrame, look: Look) -> alt.Chart:
    rows = pd.DataFrame(
        {
            "t": losses["start"].round(4),
            "victims": losses["victims"],
            "who": [", ".join(ids) for ids in losses["preempted"]],
        }
    )
    return (
        alt.Chart(rows)
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
                alt.Tooltip("victims:Q", title="preempted"),
                alt.Tooltip("who:N", title="requests"),
                alt.Tooltip("t:Q", title="at, s", format=".3f"),
            ],
        )
    )
