"""KV use, running and waiting requests, preemptions."""

from __future__ import annotations

import altair as alt
import pandas as pd

from workbench.i18n import marked, translate
from workbench.trace import Trace
from workbench.ui.charts.data import decimate, known, on_span, timeline
from workbench.ui.charts.knobs import RULES, knob_frames
from workbench.ui.charts.origin import origin, why_missing
from workbench.ui.charts.queue_marks import DESCRIPTION, NAME, RUNNING, WAITING, draw_queue
from workbench.ui.charts.scales import present
from workbench.ui.charts.theme import Look, finish, message_chart

CROSSES = 200  # most preemptions that are marked
_COLUMNS = {"kv_use": marked("KV use"), "running": RUNNING, "waiting": WAITING, "preempted": marked("preemptions")}


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
        return message_chart(
            look, name=NAME, subtitle=where, message=why_missing(trace, marked("No KV use and no queue"))
        )
    steps = steps.assign(
        kv=steps["kv_use"].astype(float) * 100,
        running=steps["running"].astype(float),
        waiting=steps["waiting"].astype(float),
        victims=steps["preempted"].map(lambda ids: 0 if ids is None else len(ids)),
    )
    rules = knob_frames(trace, look)
    losses = decimate(steps[steps["victims"] > 0], "start", ["victims"], CROSSES)
    room = look.limit - RULES * bool(rules) - len(losses)
    kept = decimate(steps, "start", ["kv", RUNNING, WAITING], room // 3)
    shown = kept[kept["kv"].notna()]
    lines = kept.melt("start", [RUNNING, WAITING], "series", "requests").dropna()
    chart = draw_queue(
        present(
            kv=pd.DataFrame({"t": shown["start"].round(4), "kv": shown["kv"].round(2)}),
            requests=lines.rename(columns={"start": "t"}).round({"t": 4}),
            losses=_losses(losses),
        )
        | rules,
        look,
        span=look.y_domain or (0, 100),
        requests=look.y2_domain or (0, 1.2 * max([1.0, *lines["requests"]])),
    )
    words = [where]
    if "KV use" not in lacking:
        words.append(translate("KV use up to {most:.0f} %", most=steps["kv"].max()))
    if "preemptions" not in lacking:
        words.append(translate("{n:,} preemptions", n=int(steps["victims"].sum())))
    subtitle = [" · ".join(words)]
    if lacking:
        subtitle.append(translate("not recorded: {what}", what=translate(", ").join(map(translate, lacking))))
    if len(kept) < len(steps):
        subtitle.append(
            translate("{kept:,} of {all:,} steps drawn: the largest of each bucket", kept=len(kept), all=len(steps))
        )
    return finish(chart, look, name=NAME, subtitle=subtitle, description=translate(DESCRIPTION))


def _losses(losses: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "t": losses["start"].round(4),
            "victims": losses["victims"],
            "who": [", ".join(ids) for ids in losses["preempted"]],
        }
    )
