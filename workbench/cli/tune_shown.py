"""What ``workbench tune`` prints and writes at its end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.table import Table

from workbench import console
from workbench.errors import InputError
from workbench.i18n import phrase, translate
from workbench.origin import in_pieces
from workbench.tune.answer.emit import write_folder
from workbench.tune.goal import Goal
from workbench.tune.trial import Result
from workbench.tune.tune import Tune


def check_targets(report: Path | None, serve: Path | None) -> None:
    """Refuse what could not be written at the end before anything is played.

    Raises:
        InputError: the folder of the report is not there, or either is something else.
    """
    if report is not None and (report.is_dir() or not report.absolute().parent.is_dir()):
        raise InputError("--report", report, "a file in a folder that is there", "make the folder, or name another")
    if serve is not None and serve.exists() and not serve.is_dir():
        raise InputError("--serve", serve, "a folder, new or there", "name another one")


def write(tune: Tune, report: Path | None, serve: Path | None) -> list[Path]:
    """Write the report, and the folder to serve the answer's setting from; those that were asked for.

    Returns:
        What was written.

    Raises:
        InputError: no setting is left to serve, or no run is left to show.
        StoreError: one cannot be written.
    """
    written = []
    if serve is not None:
        best = tune.answer.best
        if best is None:
            raise InputError("--serve", serve, "a study that has found a setting", "see why it found none, above")
        written.append(write_folder(serve, best.point, tune.question.space.config_of(best.point.start_up), tune.model))
    if report is not None:
        from workbench.report.study import write_study_report  # here, since Altair takes two seconds to import

        with console.bars() as progress:
            task = progress.add_task("report", total=None, note="")
            path = write_study_report(
                report,
                tune.answer,
                space=tune.question.space,
                again=tune.again,
                on_progress=lambda done, total, what: progress.update(task, completed=done, total=total, note=what),
            )
            progress.update(task, total=1, completed=1, note="written")
        written.append(path)
    return written


def show(tune: Tune, as_json: bool) -> None:
    """Print what a study has found so far: its trials, the answer, and the command."""
    answer, emitted = tune.answer, tune.emitted
    if as_json:
        shown_ = {"study": tune.name, "why": tune.why, **answer.as_dict()}
        shown_["results"] = [one.as_dict() for one in tune.results]
        shown_["commands"] = emitted.as_dict() if emitted is not None else None
        typer.echo(json.dumps(shown_, indent=2))
        return
    if tune.results:
        title = tune.question.scenario.name
        if answer.label:
            title = translate("{one}, {other}", one=title, other=in_pieces(answer.label))
        console.out.print(trials_table(tune.results, tune.question.goal, title))
    ended = (
        phrase("ended: {why}", why=phrase(tune.why)) if tune.why else phrase("stopped: this is what there was by then")
    )
    for line in map(translate, (*answer.words, ended)):
        console.out.print(line, markup=False, highlight=False, soft_wrap=True)
    if emitted is not None:
        typer.echo(emitted.command)
        if emitted.own_policy:
            typer.echo(emitted.own_policy)


def trials_table(results: Sequence[Result], goal: Goal, title: str) -> Table:
    """The trials in their order, in 120 columns of text.

    Args:
        results: of a study.
        goal: of the study; its objectives and limits are the columns.
        title: above it; must say where the figures come from.
    """
    table = console.plain_table(title)
    table.add_column(translate("trial"), justify="right")
    table.add_column(translate("setting"), overflow="fold")
    for aim in goal.aims:
        heading = translate("{one}, {other}", one=translate(aim.words), other=translate(aim.unit))
        table.add_column(heading, justify="right")
    for name in goal.limits:
        table.add_column(f"{name} ≤ {goal.limits[name]:g}", justify="right")
    table.add_column(translate("engine s"), justify="right")
    table.add_column("")
    for one in results:
        reached = (
            [console.cell(value) for value in one.objectives]
            if one.state == "complete"
            else [console.cell(None)] * len(goal.aims)
        )
        measured = [console.cell(one.figures.get(name)) for name in goal.limits]
        end = "" if one.feasible else translate("over a limit") if one.state == "complete" else translate(one.state)
        table.add_row(str(one.number), one.point.name, *reached, *measured, f"{one.engine_s:.1f}", end)
    return table
