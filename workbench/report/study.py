"""A study as a report: its pick, its runner-up and what lies beyond a limit, one run of each with the same seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from workbench.errors import InputError
from workbench.i18n import translate
from workbench.origin import in_pieces
from workbench.report.figure import Chart
from workbench.report.html import write_report
from workbench.report.page import WIDE, Planned, Section
from workbench.report.run import ReportRun
from workbench.store import open_run
from workbench.tune.answer.answer import Answer
from workbench.tune.answer.candidates import Candidate
from workbench.tune.space import Space
from workbench.ui.charts import Look, front_chart, importance_chart, slo_chart, study_chart

_ROW_PX, _FLAT_PX, _FRONT_PX, _BAR_PX = 52, 170, 260, 30  # heights: of a row of the first chart, of the others
_AXIS_PX = 60  # for long labels


def write_study_report(
    path: Path | str,
    answer: Answer,
    *,
    space: Space | None = None,
    again: str = "",
    on_progress: Callable[[int, int, str], None] | None = None,
) -> Path:
    """Write one self-contained HTML report of what a study has found, and return its path.

    The answer is its headline. First come the charts of the study: what each budget and chunk cap reached with the
    feasible edge, trial by trial, the front, and what matters.

    Args:
        path: of the file.
        answer: of the study; its runs must still be on disk.
        space: of the study; its values that were not played have a place in the first chart, too.
        again: the command that goes on with it.
        on_progress: as for :func:`workbench.report.html.write_report`.

    Raises:
        InputError: none of the runs that it would show is there.
        StoreError: a run cannot be read, or the file cannot be written.
    """
    runs = []
    for one in shown(answer):
        folder = next((play.run for play in one.complete if play.run and Path(play.run).is_dir()), None)
        if folder is not None:
            runs.append(ReportRun(one.name, open_run(folder), {}, answer.goal.slo))
    if not runs:
        raise InputError(
            "report of a study", "no run on disk", "the runs of its best settings", "keep them in the runs folder"
        )
    return write_report(
        path,
        runs,
        title=translate("Tuning: {goal}", goal=answer.goal.words),
        question=translate(
            "{label} · {goal} · {seconds:,.0f} engine-seconds",
            label=in_pieces(answer.label),
            goal=answer.goal.words,
            seconds=answer.engine_s,
        ),
        reproduce=again,
        answer=[translate(one) for one in answer.words],
        before=[_charts(answer, space)],
        on_progress=on_progress,
    )


def shown(answer: Answer) -> list[Candidate]:
    """The settings that a report shows: the pick, the runner-up, and the better ones that a limit keeps out.

    As the search played them, which all have one seed; where nothing is within the limits, those that miss least.
    """
    names = [one.name for one in (answer.best, answer.runner_up) if one is not None]
    names += [limit.beyond for limit in answer.limits if limit.beyond is not None]
    if not names:
        names = [str(name) for name in answer.table["setting"].head(3)] if answer.candidates else []
    by_name = {one.name: one for one in answer.candidates if one.complete}
    return [by_name[name] for name in dict.fromkeys(names) if name in by_name]


def _charts(answer: Answer, space: Space | None) -> Planned:
    """The charts of the study itself, to stand before those of its runs."""
    caps = {one.point.hot.get("chunk") or 0 for one in answer.candidates}
    caps |= set(space.hot.get("chunk", ())) if space is not None else set()
    charts: list[tuple[str, str, Callable[[], Chart]]] = [
        ("study-map", "budget and chunk cap", lambda: slo_chart(answer, space, _tall(_ROW_PX * max(len(caps), 2)))),
        ("study-trials", "trial by trial", lambda: study_chart(answer, _tall(_FLAT_PX))),
        ("study-front", "the front", lambda: front_chart(answer, _tall(_FRONT_PX))),
    ]
    if answer.importance:
        height = _BAR_PX * max(len(answer.importance), 2)
        charts.append(("study-matters", "what matters", lambda: importance_chart(answer, _tall(height))))
    note = translate(answer.goal.words)
    return Planned(Section("study", translate("The study, trial by trial"), note, (), [], wide=True), charts)


def _tall(height: int) -> Look:
    return replace(WIDE, width=WIDE.width - _AXIS_PX, height=height)
