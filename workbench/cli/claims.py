"""The verb that judges the articles' claims, and prints and writes the verdict sheet."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from workbench import console
from workbench.cli.options import JsonFlag, StartUp, start_up_fields, target
from workbench.i18n import phrase, translate

if TYPE_CHECKING:
    from rich.progress import TaskID

    from workbench.claims.evidence import Source
    from workbench.claims.gather import Tell
    from workbench.claims.sheet import Sheet

claims_verb = typer.Typer()


@claims_verb.command()
def claims(
    live: Annotated[bool, typer.Option("--live", help="Play twelve short runs on one live engine.")] = False,
    recorded: Annotated[
        bool, typer.Option("--recorded", help="From recorded runs: data/runs, or those in --runs. No vLLM needed.")
    ] = False,
    simulated: Annotated[
        bool, typer.Option("--simulated", help="Play in virtual time, on a GPU that nobody needs to have.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(help="Write the sheet here, as one HTML file without a network.", callback=target)
    ] = None,
    runs: Annotated[
        Path | None, typer.Option(help="Folder that runs are recorded in; with --recorded, that they are read from.")
    ] = None,
    start_up: StartUp = None,
    as_json: JsonFlag = False,
) -> None:
    """Judge what articles claim (C1 to C16): a verdict each, with its numbers and where they are from."""
    from workbench.claims.sheet import check_claims  # here, since metrics take a second to import

    asked: list[tuple[Source, bool]] = [("live", live), ("recorded", recorded), ("simulated", simulated)]
    sources = [source for source, wanted in asked if wanted] or None
    with console.bars() as progress:
        tasks: dict[str, TaskID] = {}

        def tell(stage: str, what: str) -> None:
            if stage not in tasks:
                for task in tasks.values():
                    progress.update(task, total=1, completed=1, note=translate("done"))
                tasks[stage] = progress.add_task(translate(stage), total=None, note="")
            progress.update(tasks[stage], note=translate(what))

        sheet = check_claims(sources, tell, runs=runs, start_up=start_up_fields(start_up))
        written = _written(out, sheet, tell) if out else None
        for task in tasks.values():
            progress.update(task, total=1, completed=1, note=translate("done"))
    _show(sheet, written, as_json)
    if sheet.interrupted or sheet.trouble:
        raise typer.Exit(1)


def _written(out: Path, sheet: Sheet, tell: Tell) -> Path:
    from workbench.report.sheet import write_sheet  # here, since Altair takes two seconds to import

    return write_sheet(
        out, sheet, on_progress=lambda _done, _total, claim: tell("sheet", phrase("drawing {claim}", claim=claim))
    )


def _show(sheet: Sheet, written: Path | None, as_json: bool) -> None:
    from workbench.claims.verdict import UNTESTED  # here, since metrics take a second to import

    if as_json:
        rows = json.loads(sheet.table.reset_index().to_json(orient="records"))
        for shown, row in zip(rows, sheet.rows, strict=True):
            shown["notes"] = dict(row.verdict.notes) if row.verdict else {}
        facts = {"summary": sheet.summary, "trouble": list(sheet.trouble), "rows": rows}
        typer.echo(json.dumps(facts | {"sheet": str(written.resolve()) if written else None}, indent=2))
        return
    for row in sheet.rows:
        said = f" {translate(row.claim.text)}{translate('.')}"
        head = Text.assemble((f"{row.claim.id} {translate(row.word)}", "bold"), (said, "dim"))
        console.out.print(head, highlight=False)
        where = f" [{translate(row.origin)}]" if row.origin else ""
        console.out.print(f"   {translate(row.numbers)}{where}", markup=False, highlight=False)
        if row.verdict and row.verdict.untested:  # a verdict is about what was tried, and says what was not
            said = f"{translate(UNTESTED)}: {translate(row.verdict.untested)}"
            console.out.print(f"   {said}", style="dim", markup=False, highlight=False)
    for line in sheet.trouble:
        console.err.print(translate(line), markup=False, highlight=False, soft_wrap=True)
    console.out.print(f"\n{translate(sheet.summary)}", style="bold", highlight=False)
    if written:
        typer.echo(written.resolve())
