"""A study as a report: its pick, its runner-up and what lies beyond a limit, one run of each with the same seed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from workbench.errors import InputError
from workbench.i18n import translate
from workbench.report.html import write_report
from workbench.report.run import ReportRun
from workbench.store import open_run
from workbench.tune.answer.answer import Answer
from workbench.tune.answer.candidates import Candidate


def write_study_report(
    path: Path | str, answer: Answer, *, study: str = "", on_progress: Callable[[int, int, str], None] | None = None
) -> Path:
    """Write one self-contained HTML report of what a study has found, and return its path.

    Args:
        path: of the file.
        answer: of the study; its runs must still be on disk.
        study: its name, for the line that goes on with it.
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
        question=translate(". ").join(map(translate, answer.words)),
        reproduce=f"workbench tune --resume {study}" if study else "",
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
