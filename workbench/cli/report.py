"""The verbs that hand over: a report of recorded runs, and an executed notebook as a page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench import console
from workbench.cli.options import JsonFlag, Lang, RunsRoot, start_up_fields, target
from workbench.errors import InputError, StoreError
from workbench.i18n import language, marked
from workbench.store import prepare_root, run_folder

if TYPE_CHECKING:
    from workbench.report.intervals import Compared
    from workbench.report.run import ReportRun
    from workbench.run import RecordedRun

report_verbs = typer.Typer()
_HOW_MANY_COMPARED = 2
_ONE_GAP = marked(
    "the longest gap is one gap of each run: how far it would differ the next time, these two cannot tell"
)


@report_verbs.command()
def report(
    runs: Annotated[list[str] | None, typer.Argument(metavar="RUN...", help="Run folders, or ids of runs.")] = None,
    out: Annotated[Path, typer.Option(help="The HTML file.")] = Path("report.html"),
    pdf: Annotated[bool, typer.Option("--pdf", help="Also as PDF beside it, through Chromium or Chrome.")] = False,
    verify: Annotated[
        Path | None, typer.Option(help="Reopen this report and check it, against RUN... where they are given.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Heading; by default the scenario's name.")] = None,
    lang: Lang = None,
    root: RunsRoot = None,
    as_json: JsonFlag = False,
) -> None:
    """Write one HTML file about recorded runs that needs no network; two runs are compared, with intervals."""
    recorded = [_opened(run, root) for run in runs or ()]
    if verify is not None:
        (_verify_sheet if _is_sheet(verify) else _verify)(verify, _labelled(recorded), as_json)
        return
    language(lang)  # asked first, as a browser is
    if not recorded:
        raise InputError("RUN", "none", "at least one run folder or id", "see `workbench runs list`")
    target(out)
    if pdf:
        from workbench.report.pdf import find_browser

        find_browser()  # asked first: a page is not drawn for a browser that is not there
        target(out.with_suffix(".pdf"))
    with console.bars() as progress:
        task = progress.add_task("report", total=None, note="reading")
        made = _labelled(recorded)
        compared = _compare(recorded) if len(recorded) == _HOW_MANY_COMPARED else None

        def drawn(done: int, total: int, what: str) -> None:
            progress.update(task, completed=done, total=total, note=what)

        path = _write(out, made, title, compared, drawn, lang)
        written = {"report": str(path.resolve()), "bytes": path.stat().st_size}
        if pdf:
            from workbench.report.pdf import write_pdf

            progress.update(task, note="PDF")
            written["pdf"] = str(write_pdf(path, path.with_suffix(".pdf")).resolve())
        progress.update(task, total=1, completed=1, note="written and checked")
    typer.echo(json.dumps(written, indent=2) if as_json else "\n".join(str(written[key]) for key in _paths(written)))


@report_verbs.command()
def notebook(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A notebook's name, its beginning (01), or a file.")],
    given: Annotated[
        list[str] | None, typer.Option("--set", help="Parameter of the notebook as name=value, such as budget=256.")
    ] = None,
    html: Annotated[bool, typer.Option("--html", help="Export as one HTML file without scripts.")] = False,
    pdf: Annotated[bool, typer.Option("--pdf", help="Export as PDF, through Chromium or Chrome.")] = False,
    code: Annotated[bool, typer.Option("--code/--no-code", help="Whether the page shows the cells' code.")] = True,
    out: Annotated[Path, typer.Option(help="Folder for what is written.")] = Path(),
    as_json: JsonFlag = False,
) -> None:
    """Execute a notebook without a browser, and export it with its charts; without --html or --pdf as a notebook."""
    from workbench.report.notebook import find_notebook, run_notebook

    path = find_notebook(name)
    if pdf:
        from workbench.report.pdf import find_browser

        find_browser()
    written = {"notebook": str((out / f"{path.stem}.ipynb").resolve())}
    if Path(written["notebook"]) == path.resolve():
        raise InputError("--out", out, "another folder than the notebook's own", "such as --out exported")
    prepare_root(out)
    with console.bars() as progress:
        task = progress.add_task(path.stem, total=None, note="")

        def cell(number: int, count: int) -> None:
            progress.update(task, completed=number, total=count, note=f"cell {number} of {count}")

        done = run_notebook(path, Path(written["notebook"]), start_up_fields(given), cell)
        if html or pdf:
            from workbench.report.export import write_page

            page = write_page(done, out / f"{path.stem}.html", title=path.stem, code=code)
            written["page"] = str(page.resolve())
        if pdf:
            from workbench.report.pdf import write_pdf

            progress.update(task, note="PDF")
            written["pdf"] = str(write_pdf(page, out / f"{path.stem}.pdf").resolve())
        progress.update(task, total=1, completed=1, note="done")
    typer.echo(json.dumps(written, indent=2) if as_json else "\n".join(written.values()))


def _opened(run: str, root: Path | None) -> RecordedRun:
    """A run by its folder, or by its id."""
    from workbench.run import RecordedRun

    folder = Path(run).expanduser()
    opened = RecordedRun(folder if (folder / "run.json").is_file() else run_folder(root, run))
    _ = opened.trace
    return opened


def _labelled(recorded: Sequence[RecordedRun]) -> list[ReportRun]:
    """Runs with a label of their own each."""
    from workbench.report.run import ReportRun

    made = [ReportRun.of(run) for run in recorded]
    labels = [one.label for one in made]
    if len(set(labels)) == len(labels):
        return made
    scenarios = [f"{run.meta.get('scenario')} {one.label}" for run, one in zip(recorded, made, strict=True)]
    own = scenarios if len(set(scenarios)) == len(scenarios) else [run.folder.name for run in recorded]
    return [ReportRun(label, one.trace, one.knobs, one.slo, one.summary) for label, one in zip(own, made, strict=True)]


def _compare(recorded: Sequence[RecordedRun]) -> Compared:
    """By the longest gap, as the headline has it, where it can be told: of one play each on a machine it cannot."""
    from workbench.tune.compare import PRIMARY, compare_recorded

    found = compare_recorded(recorded[0].folder, recorded[1].folder, primary="gap_max")
    return (
        found if "gap_max" in found.estimates else replace(found, primary=PRIMARY, concerns=(*found.concerns, _ONE_GAP))
    )


def _write(
    out: Path, made: Sequence[ReportRun], title: str | None, compared: Any, drawn: Any, lang: str | None
) -> Path:
    from workbench.report.html import write_report  # here, since Altair takes two seconds to import

    meta = [one.trace.meta for one in made]
    named = " and ".join(dict.fromkeys(str(one.get("scenario") or "run").replace("_", " ") for one in meta))
    asked = list(dict.fromkeys(str(one["question"]) for one in meta if one.get("question")))
    return write_report(
        out,
        made,
        title=title or named,
        question=" ".join(asked) or marked("What did this load get from this engine?"),
        compared=compared,
        lang=lang,
        on_progress=drawn,
    )


def _verify(path: Path, made: Sequence[ReportRun], as_json: bool) -> None:
    from workbench.report.verify import summary_of, verify_report

    problems = verify_report(path, made or None)
    if as_json:
        typer.echo(json.dumps({"report": str(path), "problems": problems, **summary_of(path)}, indent=2))
    elif not problems:
        found = summary_of(path)
        runs = "1 run" if found["runs"] == 1 else f"{found['runs']} runs"
        against = f", figures equal to {'that' if found['runs'] == 1 else 'those'} on disk" if made else ""
        typer.echo(f"sound: {found['charts']} charts, {runs}, no address outside, as it was written{against}")
    if problems and not as_json:
        raise StoreError(_faults("report", path, problems))
    if problems:
        raise typer.Exit(1)


def _is_sheet(path: Path) -> bool:
    from workbench.report.verify import is_sheet

    return path.is_file() and is_sheet(path)


def _verify_sheet(path: Path, made: Sequence[ReportRun], as_json: bool) -> None:
    from workbench.report.sheet import verify_sheet

    if made:
        raise InputError("RUN", made[0].label, "no run beside a verdict sheet", "leave the runs out")
    problems = verify_sheet(path)
    if as_json:
        typer.echo(json.dumps({"sheet": str(path), "problems": problems}, indent=2))
    elif not problems:
        typer.echo("sound: a verdict sheet, no script and no address outside, as it was written")
    if problems and not as_json:
        raise StoreError(_faults("sheet", path, problems))
    if problems:
        raise typer.Exit(1)


def _faults(kind: str, path: Path, problems: Sequence[str]) -> str:
    count = "1 fault" if len(problems) == 1 else f"{len(problems)} faults"
    return f"{kind} {path}: {count}: {'; '.join(problems[:5])}; write it again"


def _paths(written: dict[str, Any]) -> list[str]:
    return [key for key in ("report", "pdf") if key in written]
