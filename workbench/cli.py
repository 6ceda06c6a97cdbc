"""The ``workbench`` command: thin, one verb a function. Results go to stdout, progress to stderr."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from workbench import __version__, console, doctor
from workbench import demo as demonstration
from workbench import sweep as sweeps
from workbench.engine.leftovers import find_leftovers
from workbench.engine.leftovers import reap as reap_one
from workbench.errors import ConfigError, EngineStartError, InputError, WorkbenchError
from workbench.report.run import ReportRun
from workbench.run import RecordedRun
from workbench.session import Workbench
from workbench.store import delete_run, list_runs, run_folder
from workbench.sweep import Played
from workbench.workload.scenario import Scenario, Setting, load_scenario

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Tune chunked prefill on a live vLLM engine: knobs act on the next scheduler step, no restart.",
)
runs_app = typer.Typer(no_args_is_help=True, help="List, show and delete recorded runs.")
app.add_typer(runs_app, name="runs")

_INTERRUPTED = 130  # what the command-line library turns Ctrl-C into
_KEPT = "interrupted; nothing was left running, and runs that had begun are kept (workbench runs list)"

JsonFlag = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of a table.")]
RunsRoot = Annotated[Path | None, typer.Option("--runs", help="Folder of the runs (WORKBENCH_RUNS, else ./runs).")]
ScenarioArg = Annotated[str, typer.Argument(help="A scenario's name (data/scenarios) or a YAML file.")]
StartUp = Annotated[
    list[str] | None, typer.Option("--set", help="Start-up field as name=value, such as max_model_len=8192.")
]
ReportPath = Annotated[Path | None, typer.Option("--report", help="Also write a self-contained HTML report here.")]


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for summary.json, report.html and the runs.")] = Path("runs/demo"),
    start_up: StartUp = None,
) -> None:
    """Play one long prompt among chats under six settings on one engine, and write a report."""
    scenario = load_scenario(demonstration.SCENARIO)
    runs = demonstration.prepare(out)
    played: list[Played] = []
    with Workbench.of(scenario, runs=runs, **_fields(start_up)) as bench, console.bars() as progress:
        bench.start(console.engine_start(progress))
        for one in sweeps.hot(bench, scenario, scenario.settings, lambda s, r: console.follow(progress, s, r)):
            played.append(one)
            rows = demonstration.save_summary(out, played, _facts(played))  # after each: an interruption keeps the rest
        bench.stop()
        task = progress.add_task("report", total=None, note="")
        again = shlex.join(["workbench", "demo", *(part for text in start_up or () for part in ("--set", text))])

        def drawn(done: int, total: int, what: str) -> None:
            progress.update(task, completed=done, total=total, note=what)

        report = demonstration.save_report(out, played, rows, again, drawn)
        progress.update(task, completed=1, total=1, note="written")
    console.out.print(console.settings_table(rows, f"One engine (pid {rows[0]['engine_pid']}), {rows[0]['label']}"))
    typer.echo(report.resolve())


@app.command()
def run(
    scenario: ScenarioArg,
    budget: Annotated[int | None, typer.Option(help="Token budget of a step.")] = None,
    chunk: Annotated[int | None, typer.Option(help="Most prefill tokens of one request in a step; 0 is off.")] = None,
    max_running: Annotated[int | None, typer.Option(help="Most requests running at once.")] = None,
    policy: Annotated[str | None, typer.Option(help="chunked, monolithic or decode_first.")] = None,
    prefill_every: Annotated[int | None, typer.Option(help="decode_first: prefill on every N-th step.")] = None,
    seed: Annotated[int | None, typer.Option(help="Replaces the scenario's seed.")] = None,
    runs: RunsRoot = None,
    start_up: StartUp = None,
    report: ReportPath = None,
    as_json: JsonFlag = False,
) -> None:
    """Play a scenario once on a live engine and record it."""
    chosen = load_scenario(scenario)
    knobs = {
        "budget": budget,
        "chunk": chunk,
        "max_running": max_running,
        "policy": policy,
        "prefill_every": prefill_every,
    }
    given = {name: value for name, value in knobs.items() if value is not None}
    setting = Setting.of(given) if given else None
    with Workbench.of(chosen, runs=runs, **_fields(start_up)) as bench, console.bars() as progress:
        if setting:
            setting.knobs(bench.engine.envelope)  # before the start: a wrong knob should not cost one
        bench.start(console.engine_start(progress))
        played = bench.run(chosen, setting=setting, seed=seed)
        console.follow(progress, setting, played)
    _show(played, as_json)
    if report:
        _report([ReportRun(setting.name if setting else chosen.name, played.trace, {}, played.slo)], report, chosen)


@app.command()
def sweep(
    scenario: ScenarioArg,
    budget: Annotated[str | None, typer.Option(help="Budgets to try, such as 64,256,1024.")] = None,
    chunk: Annotated[str | None, typer.Option(help="Chunk caps to try; 0 is off.")] = None,
    max_running: Annotated[str | None, typer.Option(help="Running caps to try.")] = None,
    policy: Annotated[str | None, typer.Option(help="Policies to try.")] = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="An engine for each setting: for budgets above the ceiling.")
    ] = False,
    runs: RunsRoot = None,
    start_up: StartUp = None,
    report: ReportPath = None,
    as_json: JsonFlag = False,
) -> None:
    """Play a scenario under several settings: those of the file, or all combinations of the options."""
    chosen = load_scenario(scenario)
    asked: dict[str, list[Any]] = {
        "budget": _numbers("--budget", budget),
        "chunk": _numbers("--chunk", chunk),
        "max_running": _numbers("--max-running", max_running),
        "policy": policy.split(",") if policy else [],
    }
    settings = sweeps.grid(asked) if any(asked.values()) else chosen.settings
    if not settings:
        raise InputError("settings", "none", "settings in the scenario, or --budget, --chunk, --policy", "give some")
    fields, played = _fields(start_up), []
    with console.bars() as progress:

        def watch(setting: Setting, one: Any) -> None:
            console.follow(progress, setting, one)

        if restart:
            config = Workbench.of(chosen, **fields).config
            for done in sweeps.with_restarts(
                chosen, settings, watch, config=config, runs=runs, progress=console.engine_start(progress)
            ):
                played.append(done)  # noqa: PERF402  kept one by one: an interruption leaves them on disk
        else:
            with Workbench.of(chosen, runs=runs, **fields) as bench:
                for setting in settings:
                    setting.knobs(bench.engine.envelope)
                bench.start(console.engine_start(progress))
                played.extend(sweeps.hot(bench, chosen, settings, watch))
    rows = [one.row for one in played]
    if as_json:
        typer.echo(json.dumps({"scenario": chosen.name, "restart": restart, "rows": rows}, indent=2, default=str))
    else:
        console.out.print(console.settings_table(rows, f"{chosen.name}, {rows[0]['label']}"))
    if report:
        _report([one.report for one in played], report, chosen)


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
def runs_show(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="Id of a run.")],
    runs: RunsRoot = None,
    as_json: JsonFlag = False,
) -> None:
    """Show a run's figures."""
    _show(RecordedRun(run_folder(runs, run_id)), as_json)


@runs_app.command("delete")
def runs_delete(
    run_ids: Annotated[list[str], typer.Argument(metavar="RUN...", help="Ids of runs.")], runs: RunsRoot = None
) -> None:
    """Delete runs for good."""
    for run_id in run_ids:
        delete_run(runs, run_id)
        typer.echo(f"deleted {run_id}")


@app.command("doctor")
def doctor_command(
    as_json: JsonFlag = False,
    fast: Annotated[bool, typer.Option("--fast", help="Do not import vLLM to ask for its defaults.")] = False,
) -> None:
    """Look for what could keep an engine from starting; show vLLM's chunked-prefill default."""
    with console.bars() as progress:
        task = progress.add_task("doctor", total=None, note="")
        checks = doctor.examine(lambda what: progress.update(task, note=what), defaults=not fast)
        progress.update(task, total=1, completed=1, note="done")
    if as_json:
        typer.echo(doctor.as_json(checks))
    else:
        rows = [{"what": c.name, "verdict": c.verdict, "found": c.found, "to do": c.fix} for c in checks]
        console.out.print(console.frame_table(rows, ["what", "verdict", "found", "to do"]))
    if any(check.verdict == "fail" for check in checks):
        raise typer.Exit(1)


@app.command()
def reap(as_json: JsonFlag = False) -> None:
    """End engines that outlived their workbench; engines in use are left alone."""
    ended = [{"label": one.label, "processes": reap_one(one)} for one in find_leftovers()]
    if as_json:
        typer.echo(json.dumps(ended))
    else:
        total = sum(int(str(one["processes"])) for one in ended)
        typer.echo(f"ended {total} processes of {len(ended)} engines" if ended else "nothing left over")


def _fields(given: Sequence[str] | None) -> dict[str, Any]:
    """Start-up fields from ``name=value`` texts; JSON where it parses, else text."""
    fields: dict[str, Any] = {}
    for text in given or ():
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise ConfigError("--set", text, "name=value", "write it like --set max_model_len=8192")
        try:
            fields[name.strip()] = json.loads(value)
        except ValueError:
            fields[name.strip()] = value
    return fields


def _numbers(option: str, text: str | None) -> list[int]:
    try:
        return [int(part) for part in text.split(",")] if text else []
    except ValueError:
        raise InputError(option, text, "whole numbers with commas between", "write it like 64,256,1024") from None


def _show(played: RecordedRun, as_json: bool) -> None:
    figures = played.summary
    if as_json:
        shown = {key: played.meta.get(key) for key in ("id", "label", "scenario", "setting", "status", "reason")}
        typer.echo(json.dumps({"run": str(played.folder), **shown, "summary": figures}, indent=2, default=str))
        return
    rows = [{"figure": name, "value": value} for name, value in figures.items() if not isinstance(value, dict)]
    title = f"{played.meta.get('scenario')} · {played.meta.get('label')} · {played.meta.get('status')}"
    console.out.print(console.frame_table(rows, ["figure", "value"], title))
    typer.echo(played.folder)


def _report(reports: Sequence[ReportRun], path: Path, scenario: Scenario) -> None:
    from workbench.report.html import write_report  # here, since Altair takes two seconds to import

    written = write_report(path, reports, title=scenario.name.replace("_", " "), question=scenario.question)
    typer.echo(written.resolve())


def _facts(played: Sequence[Played]) -> dict[str, Any]:
    meta = played[-1].run.meta
    return {
        key: meta.get(key) for key in ("label", "scenario", "question", "seed", "slo", "machine", "versions", "engine")
    }


def _terminate(signum: int, _frame: FrameType | None) -> NoReturn:
    """End like Ctrl-C does, through every ``with``, so that nothing stays behind."""
    raise KeyboardInterrupt(signal.Signals(signum).name)


def main() -> None:
    """Entry point: one line for every foreseen error, exit code 2 for input and 1 for failure."""
    for signum in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, _terminate)
    try:
        code = app(standalone_mode=False)
        if code == _INTERRUPTED:
            _fail(_KEPT, 1)
        sys.exit(code if isinstance(code, int) else 0)
    except WorkbenchError as error:
        if isinstance(error, EngineStartError) and error.log_tail:
            typer.echo("\n".join(f"  | {line}" for line in error.log_tail), err=True)
        _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        _fail(_KEPT, 1)
    except typer.Exit as leave:
        sys.exit(leave.exit_code)
    except Exception as error:
        usage = getattr(error, "format_message", None)  # the command-line library's own errors
        if usage is not None:
            _fail(usage(), 2)
        if os.environ.get("WORKBENCH_DEBUG"):
            raise
        _fail(f"unforeseen {type(error).__name__}: {error}; run again with WORKBENCH_DEBUG=1 and report it", 1)


def _fail(message: str, code: int) -> NoReturn:
    typer.echo(f"workbench {__version__}: {' '.join(message.split())}", err=True)
    sys.exit(code)


if __name__ == "__main__":
    main()
