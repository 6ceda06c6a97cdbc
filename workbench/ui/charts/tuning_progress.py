"""How a study went: what each trial reached, the best so far, and the confirmation behind it."""

from __future__ import annotations

import math
from typing import Any

import altair as alt
import pandas as pd

from workbench.i18n import counted, marked, translate
from workbench.origin import in_pieces
from workbench.tune.answer.answer import Answer
from workbench.tune.trial import Result
from workbench.ui.charts.scales import y_axis
from workbench.ui.charts.theme import Look, finish, message_chart
from workbench.ui.charts.tuning import kind_colour, kind_of, kind_shape

NAME = marked("The study, trial by trial")
_HEADROOM = 1.12
_NO_FIGURE = marked("No trial was played for long enough to have a figure yet.")


def study_chart(answer: Answer, look: Look | None = None) -> alt.Chart | alt.LayerChart:
    """The first objective of every trial in the order of the study, and the best within the limits so far as a line.

    Trials that were stopped early stand where they had come to. Behind a rule follow the plays of the confirmation;
    they have seeds of their own.

    Args:
        answer: of a study, also of one that goes on.
        look: size and theme.
    """
    look = look or Look(height=200)
    confirmed = answer.confirmation.results if answer.confirmation is not None else ()
    aim, colours = answer.goal.aims[0], look.palette
    rows = [_row(one, place) for place, one in enumerate((*answer.results, *confirmed), start=1)]
    shown = [row for row in rows if row["reached"] is not None]
    subtitle = _subtitle(answer, len(shown))
    if not shown:
        return message_chart(
            look, name=NAME, subtitle=subtitle[0], message=translate(_NO_FIGURE if rows else "Nothing was played yet.")
        )
    frame = pd.DataFrame(shown)
    top = _HEADROOM * max(frame["reached"].max(), 1e-9)
    x = alt.X("at:Q", scale=alt.Scale(domain=[0, len(rows) + 1], nice=False), axis=_trials(len(rows)))
    y = alt.Y(
        "reached:Q",
        scale=alt.Scale(domain=[0, top], nice=False),
        axis=y_axis(translate("{one}, {other}", one=translate(aim.words), other=translate(aim.unit)), tickCount=4),
    )
    colour = kind_colour(look, colours.decode, colours.alert, colours.muted)
    layers: list[alt.Chart] = []
    line = _best_so_far(answer)
    if line:
        layers.append(
            alt.Chart(pd.DataFrame(line))
            .mark_line(interpolate="step-after", color=colours.ink, strokeWidth=1.4, aria=False)
            .encode(x=x, y=y)
        )
    if confirmed:
        layers.append(
            alt.Chart(pd.DataFrame({"at": [len(answer.results) + 0.5]}))
            .mark_rule(color=colours.muted, strokeDash=[2, 3], aria=False)
            .encode(x=x)
        )
    layers.append(
        alt.Chart(frame)
        .mark_point(filled=True, size=60, opacity=1, aria=False)
        .encode(
            x=x, y=y, color=colour, shape=kind_shape(look),
            tooltip=[
                alt.Tooltip(f"{name}:N")
                for name in ("trial", "setting", "kind", marked("figure"), "limits", marked("seed"))
            ],
        )
    )  # fmt: skip
    return finish(
        alt.layer(*layers),
        look,
        name=NAME,
        subtitle=subtitle,
        description=translate(
            "{what} of {plays} plays in their order, with the best within the limits so far.",
            what=translate(aim.words),
            plays=len(shown),
        ),
    )


def _trials(count: int) -> alt.Axis:
    step = max(1, math.ceil(count / 20))
    return alt.Axis(title=translate("play of the study"), values=list(range(step, count + 1, step)), format="d")


def _row(one: Result, place: int) -> dict[str, Any]:
    reached = one.objectives[0] if one.objectives and math.isfinite(one.objectives[0]) else None
    return {
        "at": place,
        "trial": one.number,
        "setting": one.point.name,
        "kind": kind_of(one),
        "reached": reached,
        "figure": f"{reached:.4g}" if reached is not None else "n/a",
        "limits": "; ".join(f"{name} {over:+.0%}" for name, over in one.excess.items()),
        "seed": one.seed,
    }


def _best_so_far(answer: Answer) -> list[dict[str, float]]:
    """A step at each trial that was better than all before it, up to the last trial."""
    aim, best, line = answer.goal.aims[0], None, list[dict[str, float]]()
    for place, one in enumerate(answer.results, start=1):
        if one.feasible and (best is None or aim.better(one.objectives[0], best)):
            best = one.objectives[0]
            line.append({"at": float(place), "reached": best})
    if best is not None:
        line.append({"at": float(len(answer.results)), "reached": best})
    return line


def _subtitle(answer: Answer, shown: int) -> list[str]:
    hidden = len(answer.results) - sum(bool(one.objectives) for one in answer.results)
    lines = [
        translate(
            "{label} · {goal} · {seconds:,.0f} engine-seconds",
            label=in_pieces(answer.label or marked("not played")),
            goal=answer.goal.words,
            seconds=answer.engine_s,
        )
    ]
    if shown:
        lines.append(translate("line: the best within the limits so far"))
    if answer.confirmation is not None:
        lines[-1] += translate(" · behind the dotted rule: the confirmation, on fresh seeds")
    if hidden:
        lines.append(
            counted(
                "{n} trial failed or was interrupted and is not drawn",
                "{n} trials failed or were interrupted and are not drawn",
                hidden,
            )
        )
    return lines
