"""``workbench export`` and ``workbench import``: runs for other tools, and other tools' results as runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

from workbench import console
from workbench.cli.house import show_run
from workbench.cli.options import JsonFlag, RunsRoot
from workbench.errors import InputError
from workbench.store import run_folder

exchange_verbs = typer.Typer()

Format = Literal["perfetto", "csv", "parquet"]


@exchange_verbs.command("export")
def export_command(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Id of a run, or a run folder.")],
    form: Annotated[str, typer.Option("--format", help=f"{', '.join(get_args(Format)[:-1])} or parquet.")] = "perfetto",
    out: Annotated[
        Path | None, typer.Option(help="File (perfetto; .json or .json.gz) or new folder (csv, parquet).")
    ] = None,
    runs: RunsRoot = None,
    as_json: JsonFlag = False,
) -> None:
    """Write a run as a Perfetto (Chrome) trace, or its tables as CSV or Parquet."""
    from workbench.exchange import write_csv, write_parquet, write_perfetto  # here, since tables take long to import
    from workbench.run import RecordedRun

    if form not in get_args(Format):
        raise InputError("--format", form, f"one of {', '.join(get_args(Format))}", "choose one of these")
    played = RecordedRun(Path(run) if Path(run).is_dir() else run_folder(runs, run))
    name = played.folder.name
    path = out or Path(f"{name}.perfetto.json.gz" if form == "perfetto" else f"{name}-{form}")
    with console.bars() as progress:
        task = progress.add_task(f"export, {form}", total=None, note="reading the run")
        trace = played.trace
        progress.update(task, note="writing")
        written = {"perfetto": write_perfetto, "csv": write_csv, "parquet": write_parquet}[form](trace, path)
        progress.update(task, total=1, completed=1, note="written")
    if as_json:
        typer.echo(json.dumps({"run": name, "format": form, "path": str(written.resolve())}))
    else:
        typer.echo(written.resolve())


@exchange_verbs.command("import")
def import_command(
    file: Annotated[
        Path,
        typer.Argument(help="Of vllm bench serve --save-detailed, GuideLLM (json) or AIPerf (profile_export.jsonl)."),
    ],
    name: Annotated[str | None, typer.Option(help="Of the run; by default the file's.")] = None,
    benchmark: Annotated[
        int | None, typer.Option(min=0, help="Which benchmark of a GuideLLM file with several; 0 is the first.")
    ] = None,
    compare: Annotated[
        str | None, typer.Option(metavar="RUN", help="Also show its figures beside those of this run.")
    ] = None,
    runs: RunsRoot = None,
    as_json: JsonFlag = False,
) -> None:
    """Record another tool's result file as a run, with what it holds; compare it with a run of ours."""
    from workbench.exchange import read_results, record  # as above
    from workbench.handover import side_by_side
    from workbench.run import RecordedRun

    other = None
    if compare is not None:  # before anything is recorded: a slip should leave nothing
        other = RecordedRun(Path(compare) if Path(compare).is_dir() else run_folder(runs, compare))
    trace = read_results(file, benchmark).trace()  # before the bar: a wrong file should not cost one
    with console.bars() as progress:
        task = progress.add_task("import", total=None, note="recording")
        played = record(trace, runs, name or f"import {file.stem}")
        progress.update(task, total=1, completed=1, note="recorded")
    if other is None:
        show_run(played, as_json)
    else:
        frame = side_by_side([other, played])
        if as_json:
            rows = json.loads(frame.to_json(orient="index"))
            typer.echo(json.dumps({"run": str(played.folder), "compare": rows}, indent=2))
        else:
            rows = [{"figure": figure, **row} for figure, row in frame.to_dict(orient="index").items()]
            console.out.print(console.frame_table(rows, ["figure", *map(str, frame.columns)]))
            typer.echo(played.folder)
    if not as_json:
        for missing in played.meta["imported"]["missing"]:
            console.err.print(f"not in the file: {missing}", highlight=False, soft_wrap=True)
