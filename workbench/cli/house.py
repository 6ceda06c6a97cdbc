"""The verbs around playing: recorded runs, a look at the machine, engines that were left behind."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from workbench import console
from workbench.cli.options import JsonFlag, RunsRoot
from workbench.i18n import translate
from workbench.origin import in_pieces, origin_words
from workbench.printable import printable
from workbench.store import delete_run, list_runs, run_folder

if TYPE_CHECKING:
    from workbench.run import RecordedRun

house = typer.Typer()
runs_app = typer.Typer(no_args_is_help=True, help="List, show and delete recorded runs.")
house.add_typer(runs_app, name="runs")


@runs_app.command("list")
def runs_list(runs: RunsRoot = None, as_json: JsonFlag = False) -> None:
    """List the recorded runs, oldest first."""
    frame = list_runs(runs)
    rows = json.loads(frame.to_json(orient="records", date_format="iso"))
    if as_json:
        typer.echo(json.dumps(rows, indent=2))
    else:
        columns = ["id", "scenario", "setting", "label", "status", "duration_s"]
        console.out.print(
            console.frame_table(rows, columns) if rows else "no runs yet; try workbench run chat_and_long"
        )


@runs_app.command("show")
def runsshow_run(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="Id of a run.")],
    runs: RunsRoot = None,
    as_json: JsonFlag = False,
) -> None:
    """Show a run's figures."""
    from workbench.run import RecordedRun  # here, since metrics take a second to import

    show_run(RecordedRun(run_folder(runs, run_id)), as_json)


@runs_app.command("delete")
def runs_delete(
    run_ids: Annotated[list[str], typer.Argument(metavar="RUN...", help="Ids of runs.")], runs: RunsRoot = None
) -> None:
    """Delete runs for good."""
    for run_id in run_ids:
        delete_run(runs, run_id)
        typer.echo(f"deleted {run_id}")


@house.command("doctor")
def doctor_command(
    as_json: JsonFlag = False,
    fast: Annotated[bool, typer.Option("--fast", help="Do not import vLLM to ask for its defaults.")] = False,
) -> None:
    """Look for what could keep an engine from starting; show vLLM's chunked-prefill default."""
    from workbench import doctor  # here, as below: a list of runs has no use for what looks at machines

    with console.bars() as progress:
        task = progress.add_task(translate("doctor"), total=None, note="")
        checks = doctor.examine(lambda what: progress.update(task, note=translate(what)), defaults=not fast)
        progress.update(task, total=1, completed=1, note=translate("done"))
    if as_json:
        typer.echo(doctor.as_json(checks))
    else:
        columns = [translate(name) for name in ("what", "verdict", "found", "to do")]
        rows = [
            dict(zip(columns, map(translate, (one.name, one.verdict, one.found, one.fix)), strict=True))
            for one in checks
        ]
        console.out.print(console.frame_table(rows, columns))
    if any(check.verdict == "fail" for check in checks):
        raise typer.Exit(1)


@house.command()
def reap(as_json: JsonFlag = False) -> None:
    """End engines that outlived their workbench; engines in use are left alone."""
    from workbench.engine.leftovers import find_leftovers
    from workbench.engine.leftovers import reap as reap_one

    ended = [{"label": one.label, "processes": reap_one(one)} for one in find_leftovers()]
    if as_json:
        typer.echo(json.dumps(ended))
    else:
        total = sum(int(str(one["processes"])) for one in ended)
        typer.echo(f"ended {total} processes of {len(ended)} engines" if ended else "nothing left over")


def show_run(played: RecordedRun, as_json: bool) -> None:
    """Print a run's figures, as a table or as JSON."""
    figures = played.summary
    if as_json:
        shown = {key: played.meta.get(key) for key in ("id", "label", "scenario", "setting", "status", "reason")}
        shown["origin"] = origin_words(played.meta)
        typer.echo(json.dumps({"run": str(played.folder), **shown, "summary": figures}, indent=2, default=str))
        return
    rows = [{"figure": name, "value": value} for name, value in figures.items() if not isinstance(value, dict)]
    scenario, status = played.meta.get("scenario"), translate(str(played.meta.get("status")))
    title = f"{scenario} · {in_pieces(origin_words(played.meta))} · {status}"
    console.out.print(console.frame_table(rows, ["figure", "value"], title))
    failed = played.trace.requests.query("status == 'error'")
    if len(failed):
        first = failed.iloc[0]
        many = f"{len(failed):,} of {figures['requests']:,} requests failed, the first {first['request']}: "
        typer.echo(printable(many + " ".join(str(first["error"]).split())), err=True)
    typer.echo(played.folder)
