"""History: what each request went through, a lane each: queued, prefill, decode, preempted, computed again."""

from __future__ import annotations

from dataclasses import replace

import altair as alt
import pandas as pd

from workbench import metrics
from workbench.i18n import counted, marked, translate
from workbench.trace import Trace
from workbench.ui.charts.data import on_span
from workbench.ui.charts.history_marks import HEIGHTS, LINES, NAME, draw_history
from workbench.ui.charts.knobs import RULES, knob_frames
from workbench.ui.charts.origin import origin, why_missing
from workbench.ui.charts.scales import present
from workbench.ui.charts.theme import Look, finish, message_chart

LANES = 28  # most requests with a lane: what an eye can follow
LANE = 16  # px
_DIGIT = 5.6  # px of a digit of a mark's label


def history_chart(trace: Trace, look: Look | None = None) -> alt.Chart | alt.LayerChart:
    """One lane a request, grouped by class, with its phases against time and a cross at each preemption.

    Full bars are prefill, half bars decode, hollow bars what a preemption made the engine compute again; a thin line is
    a wait before the first step, a dashed one a wait after a preemption. Beside the cross stands how many tokens of KV
    were lost, where there is room.

    Args:
        trace: the run.
        look: size and theme; the height follows from the number of lanes.
    """
    look = on_span(look or Look(), trace)
    where = origin(trace)
    phases = metrics.phases(trace)
    if phases.empty:
        return message_chart(
            look, name=NAME, subtitle=where, message=why_missing(trace, marked("No phases of requests"))
        )
    losses = metrics.preemptions(trace)
    requests = _requests(trace, phases, losses)
    lanes, headings, rows = _laid_out(_chosen(requests, LANES))
    look = replace(look, height=(rows + 1) * LANE)
    rules = knob_frames(trace, look)
    marks = _marks(losses, lanes, look)
    room = look.limit - RULES * bool(rules) - 2 * len(marks) - len(headings) - len(HEIGHTS)
    bars = phases[phases["request"].isin(lanes["request"])]
    kept = bars.assign(seconds=bars["end_s"] - bars["begin_s"]).nlargest(max(room, 1), "seconds")
    drawn = _bars(kept, lanes)
    chart = draw_history(
        present(
            **{str(phase): rows for phase, rows in drawn.groupby("phase")},
            headings=headings,
            marks=marks,
            labels=marks[marks["fits"].astype(bool)],
        )
        | rules,
        look,
        lanes=dict(zip(lanes["lane"].tolist(), lanes["request"].astype(str), strict=True)),
        there=[phase for phase in HEIGHTS if phase in set(drawn["phase"])],
    )
    lines = [f"{where} · {_preemption_words(losses)}"]
    if len(lanes) < len(requests):
        lines.append(
            translate(
                "{shown:,} of {all:,} requests shown: of each class those that lost most, then those that "
                "waited longest",
                shown=len(lanes),
                all=len(requests),
            )
        )
    if len(kept) < len(bars):
        lines.append(translate("{kept:,} of {all:,} phases drawn: the longest", kept=len(kept), all=len(bars)))
    if look.legend and len(losses):
        lines.append(translate("cross: preemption, and the tokens of KV that it cost"))
    return finish(
        chart,
        look,
        name=NAME,
        subtitle=lines,
        description=translate(
            "A lane for each of {lanes:,} requests with its phases against time. {losses}.",
            lanes=len(lanes),
            losses=_preemption_words(losses).capitalize(),
        ),
    )


def _requests(trace: Trace, phases: pd.DataFrame, losses: pd.DataFrame) -> pd.DataFrame:
    """One row a request that has phases: class, priority, begin, tokens lost, and seconds in which it only waited."""
    frame = phases.groupby("request", observed=True, sort=False).agg(
        **{"class": ("class", "first"), "begin": ("begin_s", "min")}
    )
    frame["class"] = frame["class"].astype(object).fillna("unknown").astype(str)
    idle = phases[phases["phase"].isin(LINES)]
    waited = (idle["end_s"] - idle["begin_s"]).groupby(idle["request"], observed=True).sum()
    asked = trace.requests.drop_duplicates("request").set_index("request")["priority"]
    return frame.assign(
        priority=asked.reindex(frame.index),
        lost=losses.groupby("request", observed=True)["lost_tokens"].sum().reindex(frame.index).fillna(0.0),
        waited=waited.reindex(frame.index).fillna(0.0),
    ).reset_index()


def _chosen(requests: pd.DataFrame, most: int) -> pd.DataFrame:
    """At most so many requests; each class keeps its share of the lanes, and at least one."""
    if len(requests) <= most:
        return requests
    ranked = requests.sort_values(["lost", "waited", "begin"], ascending=[False, False, True], kind="stable")
    parts = ranked.groupby("class", sort=False)
    spare = max(most - parts.ngroups, 0)
    return pd.concat([part.head(1 + spare * len(part) // len(requests)) for _, part in parts]).head(most)


def _laid_out(requests: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame, int]:
    """Lanes (request, class, lane), headings (lane, what) and how many lanes they take; the most urgent class first."""
    ordered = requests.sort_values(["priority", "class", "begin", "request"], kind="stable")
    lanes, headings, at = [], [], 0
    for name, part in ordered.groupby("class", sort=False):
        urgency = part["priority"].dropna().unique()
        what = str(name)
        if len(urgency) == 1:
            what = translate("{name} (priority {priority:.0f})", name=name, priority=urgency[0])
        headings.append((at, what))
        lanes.append(part[["request", "class"]].assign(lane=range(at + 1, at + 1 + len(part))))
        at += 1 + len(part)
    return pd.concat(lanes, ignore_index=True), pd.DataFrame(headings, columns=["lane", "what"]), at


def _bars(phases: pd.DataFrame, lanes: pd.DataFrame) -> pd.DataFrame:
    lane = phases["request"].map(lanes.set_index("request")["lane"]).astype(float)
    half = phases["phase"].map(HEIGHTS).astype(float)
    return pd.DataFrame(
        {
            "t": phases["begin_s"].round(4),
            "t2": phases["end_s"].round(4),
            "y": (lane - half).round(2),
            "y2": (lane + half).round(2),
            "phase": phases["phase"].astype(str),
            "request": phases["request"].astype(str),
            "tokens": phases["tokens"],
            "seconds": phases["seconds"].round(4),
        }
    ).sort_values("t", kind="stable")


def _marks(losses: pd.DataFrame, lanes: pd.DataFrame, look: Look) -> pd.DataFrame:
    """Crosses, the costliest of too many; ``fits`` where the figure has room until the request is back."""
    mine = losses[losses["request"].isin(lanes["request"])].nlargest(look.limit // 8, "lost_tokens")
    low, high = look.x_domain or (0.0, 1.0)
    words = [f"−{n:,.0f}" if n == n and n is not None else "" for n in mine["lost_tokens"].astype(float)]
    pixels = mine["away_s"].astype(float).fillna(high - mine["at_s"]) * look.width / (high - low)
    return pd.DataFrame(
        {
            "t": mine["at_s"].round(4),
            "y": mine["request"].map(lanes.set_index("request")["lane"]).astype(float),
            "request": mine["request"].astype(str),
            "lost": mine["lost_tokens"],
            "again": mine["recomputed_tokens"],
            "away": mine["away_s"].astype(float).round(3),
            "recovered": mine["recovered_s"].astype(float).round(3),
            "label": words,
            "fits": [bool(n) and 8 + _DIGIT * len(n) <= room for n, room in zip(words, pixels, strict=True)],
        }
    )


def _preemption_words(losses: pd.DataFrame) -> str:
    """How often, how much was lost, how much was computed again, and for how long a request was away."""
    if losses.empty:
        return translate("no preemption")
    lost, again = losses["lost_tokens"].sum(min_count=1), losses["recomputed_tokens"].sum(min_count=1)
    words = [counted("{n:,} preemption", "{n:,} preemptions", len(losses))]
    words += [translate("{lost:,.0f} tokens lost", lost=lost)] if pd.notna(lost) else []
    words += [translate("{again:,.0f} computed again", again=again)] if pd.notna(again) else []
    away = losses["away_s"].max()
    words += [translate("away up to {away:,.1f} s", away=away)] if pd.notna(away) else []
    return translate(", ").join(words)
