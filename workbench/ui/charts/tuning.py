"""A study by budget and chunk cap: what each sampled setting reached, and the edge of those within the limits."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import altair as alt
import pandas as pd

from workbench.i18n import counted, marked, translate
from workbench.origin import in_pieces
from workbench.tune.answer.answer import Answer
from workbench.tune.answer.candidates import Candidate
from workbench.tune.goal import FAILED
from workbench.tune.space import Space
from workbench.tune.trial import Result
from workbench.ui.charts.grid import STRONG, cell_axis, cell_border, cell_frame, cell_words, sampled_edges
from workbench.ui.charts.theme import Look, finish, message_chart

CONTOUR = marked("What each budget and chunk cap reached")
WITHIN, OUTSIDE, STOPPED = marked("within the limits"), marked("breaks a limit"), marked("stopped, others are better")
KINDS = {WITHIN: "circle", OUTSIDE: "cross", STOPPED: "triangle-down"}  # shapes: colour never says it alone
_FAINT = 0.08  # opacity of the least
_OUT = 0.1  # opacity of what is not within the limits
_ROW_PX = 52
_DOTS = (0.12, 0.88)  # of a cell's width that the marks of its trials take


def kind_of(one: Result) -> str:
    """How a trial is drawn: within the limits, breaking one, or stopped before it did, since others are better."""
    if one.feasible:
        return WITHIN
    return OUTSIDE if any(over > 0 for over in one.excess.values()) else STOPPED


def slo_chart(answer: Answer, space: Space | None = None, look: Look | None = None) -> alt.Chart | alt.LayerChart:
    """The best that was reached by budget (across) and chunk cap (up); darker is better.

    Orange breaks a limit, grey was stopped early since others are better. Every trial is a mark in its cell. Only what
    was sampled is coloured, nothing is interpolated; a dashed line parts cells within the limits from the next sampled
    ones that are not, half-way between them. Where several settings share a cell (other policies, running caps), it
    shows the best of them.

    Args:
        answer: of a study, also of one that goes on.
        space: its values that were not sampled have a place too, so that the chart fills in and does not grow.
        look: size and theme.
    """
    cells = _by_cell(answer.candidates)
    budgets, chunks = _values(cells, space)
    look = look or Look(height=_ROW_PX * max(len(chunks), 2))
    if not cells:
        return message_chart(
            look, name=CONTOUR, subtitle=_subtitle(answer, 0)[0], message=translate("Nothing was played yet.")
        )
    places = {key: (budgets.index(key[0]), chunks.index(key[1])) for key in cells}
    aim, best = answer.goal.aims[0], answer.best
    shown = {key: _shown(some, answer) for key, some in cells.items()}
    rows = [_cell(one, answer, *places[key]) for key, one in shown.items()]
    frame, colours = pd.DataFrame(rows), look.palette
    title = {"x": translate("token budget of a step"), "y": translate("chunk cap, tokens")}
    x, middle_x = (
        cell_axis(alt.X, name, title["x"], [f"{one:,}" if one else translate("as started") for one in budgets])
        for name in ("x", "mx")
    )
    y, middle_y = (
        cell_axis(alt.Y, name, title["y"], [f"{one:,}" if one else translate("off") for one in chunks])
        for name in ("y", "my")
    )
    tips = [alt.Tooltip(f"{name}:N") for name in ("setting", marked("reached"), marked("limits"), marked("plays"))]
    layers: list[alt.Chart] = []
    for kind, colour in ((WITHIN, colours.decode), (OUTSIDE, colours.alert), (STOPPED, colours.muted)):
        some = frame[frame["kind"] == kind]
        if len(some):
            layers.append(
                alt.Chart(some)
                .mark_rect(color=colour, stroke=colours.ground, strokeWidth=2, strokeOpacity=1, aria=False)
                .encode(
                    x=x, x2="x2:Q", y=y, y2="y2:Q", tooltip=tips,
                    opacity=alt.Opacity("shade:Q", scale=alt.Scale(domain=[0, 1], range=[0, 1]), legend=None),
                )
            )  # fmt: skip
    words = alt.Chart(frame).encode(x=middle_x, y=middle_y)
    layers.append(cell_words(words, "figure", -9, colours.ink, fontSize=13, fontWeight=600))
    layers.append(cell_words(words, "nearest", 5, colours.ink, fontSize=10))
    layers.append(_marks(cells, places, x, y, look))
    if best is not None and (key := _key(best)) in places:
        layers.append(cell_frame(places[key], x, y, colours.ink))
    known = {places[key]: one.feasible for key, one in shown.items() if one.feasible or one.broken}
    edges = sampled_edges(known)
    if edges:
        layers.append(cell_border(edges, x, y, colours.alert))
    elsewhere = len(answer.candidates) - sum(map(len, cells.values()))
    return finish(
        alt.layer(*layers),
        look,
        name=CONTOUR,
        subtitle=_subtitle(answer, elsewhere),
        description=translate(
            "Heat map: {what} at {count} sampled settings of budget and chunk cap. ",
            what=translate(aim.words),
            count=len(cells),
        )
        + " ".join(f"{row['setting']}: {row['reached']}, {row['limits']}." for row in rows),
    )


def _key(one: Candidate) -> tuple[int, int]:
    """Budget and chunk cap; a study that does not vary one of them has a single place for it."""
    return int(one.point.hot.get("budget") or 0), int(one.point.hot.get("chunk") or 0)


def _by_cell(candidates: Iterable[Candidate]) -> dict[tuple[int, int], list[Candidate]]:
    """The settings by their cell; those under policies that have neither knob are in none."""
    found: dict[tuple[int, int], list[Candidate]] = {}
    for one in candidates:
        if {"budget", "chunk"} & set(one.point.hot):
            found.setdefault(_key(one), []).append(one)
    return found


def _values(cells: Iterable[tuple[int, int]], space: Space | None) -> tuple[list[int], list[int]]:
    """Budgets and chunk caps in their order; no cap is the largest cap."""
    budgets, chunks = {key[0] for key in cells}, {key[1] for key in cells}
    if space is not None:
        budgets |= set(space.hot.get("budget", ()))
        chunks |= set(space.hot.get("chunk", ()))
    return sorted(budgets), sorted(chunks, key=lambda one: one or math.inf)


def _shown(some: Sequence[Candidate], answer: Answer) -> Candidate:
    """Of the settings in a cell, the best within the limits, or the one that misses least."""
    keys = {one.point.key for one in some}
    for one in answer.ranking:
        if one.point.key in keys:
            return one
    return min(some, key=lambda one: (one.broken, not one.complete, one.worst[1] if one.worst is not None else 0.0))


def _cell(one: Candidate, answer: Answer, x: int, y: int) -> dict[str, Any]:
    aim, worst = answer.goal.aims[0], one.worst
    reached = one.objectives[0] if one.objectives else None
    figure = f"{reached:.3g}" if reached is not None else translate("stopped")
    return {
        "x": x, "x2": x + 1, "y": y, "y2": y + 1, "mx": x + 0.5, "my": y + 0.5,
        "kind": WITHIN if one.feasible else OUTSIDE if one.broken else STOPPED,
        "shade": _shade(reached, answer) if one.feasible else _OUT,
        "setting": one.name,
        "figure": figure,
        "nearest": near_words(*worst) if worst is not None else "",
        "reached": f"{translate(aim.words)} {figure} {translate(aim.unit)}"
        if reached is not None
        else translate("stopped before its end"),
        "limits": "; ".join(f"{name} {over:+.0%}" for name, over in one.excess.items() if name != FAILED or over > 0)
        or translate("no limit"),
        "plays": translate("{plays}, {met} within the limits", plays=len(one.plays), met=one.met),
    }  # fmt: skip


def _shade(reached: float | None, answer: Answer) -> float:
    values = [one.objectives[0] for one in answer.ranking if math.isfinite(one.objectives[0])]
    low, high = min(values, default=0.0), max(values, default=0.0)
    if reached is None or not math.isfinite(reached) or high <= low:
        return STRONG
    share = (reached - low) / (high - low)
    share = share if answer.goal.aims[0].direction == "maximize" else 1 - share
    return _FAINT + (STRONG - _FAINT) * share


def near_words(name: str, over: float) -> str:
    """A limit and how far it is, short: "gap -6%", "TTFT +22%"."""
    if name == FAILED:
        return translate("{over:.0%} failed", over=over) if over > 0 else ""
    return f"{'TTFT' if name.startswith('ttft') else translate('gap')} {over:+.0%}"


def _marks(
    cells: dict[tuple[int, int], list[Candidate]],
    places: dict[tuple[int, int], tuple[int, int]],
    x: alt.X,
    y: alt.Y,
    look: Look,
) -> alt.Chart:
    """Every play as a mark at the foot of its cell, in the order of the study."""
    rows = []
    for key, some in cells.items():
        plays = sorted((one for each in some for one in each.plays), key=lambda one: one.number)
        at_x, at_y = places[key]
        for place, one in enumerate(plays):
            share = (place + 1) / (len(plays) + 1)
            rows.append(
                {"x": at_x + _DOTS[0] + (_DOTS[1] - _DOTS[0]) * share, "y": at_y + 0.16, "trial": one.number,
                 "kind": kind_of(one), "setting": one.point.name}
            )  # fmt: skip
    return (
        alt.Chart(pd.DataFrame(rows))
        .mark_point(filled=True, size=26, opacity=1, aria=False)
        .encode(
            x=x, y=y, shape=kind_shape(look), color=kind_colour(look, *[look.palette.ink] * len(KINDS)),
            tooltip=[alt.Tooltip(f"{name}:N") for name in (marked("trial"), "setting", marked("kind"))],
        )
    )  # fmt: skip


def kind_shape(look: Look) -> alt.Shape:
    """The shapes of trials; where colours say it too, the legend has both."""
    return alt.Shape(
        "kind:N",
        scale=alt.Scale(domain=list(KINDS), range=list(KINDS.values())),
        legend=alt.Legend(title=None) if look.legend else None,
    )


def kind_colour(look: Look, *colours: str) -> alt.Color:
    """The colours of trials, in the order of their kinds."""
    return alt.Color(
        "kind:N",
        scale=alt.Scale(domain=list(KINDS), range=list(colours)),
        legend=alt.Legend(title=None) if look.legend else None,
    )


def _subtitle(answer: Answer, elsewhere: int) -> list[str]:
    aim = answer.goal.aims[0]
    lines = [
        counted(
            "{label} · {what}, {unit} · {n} trial",
            "{label} · {what}, {unit} · {n} trials",
            len(answer.results),
            label=in_pieces(answer.label or "not played"),
            what=translate(aim.words),
            unit=translate(aim.unit),
        ),
        translate(answer.goal.words),
        translate(
            "below each figure the nearest limit · dashed: the edge, half-way between sampled cells · framed: the pick"
        ),
    ]
    if elsewhere:
        lines.append(
            counted(
                "{n} setting of a policy without budget and chunk cap is not in the grid",
                "{n} settings of policies without budget and chunk cap are not in the grid",
                elsewhere,
            )
        )
    return lines
