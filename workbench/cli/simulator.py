"""The verbs that keep the simulator honest: calibrate it on a live engine, and hold it against live runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from workbench import console
from workbench.cli.options import JsonFlag, RunsRoot, StartUp, start_up_fields
from workbench.errors import InputError
from workbench.session import Workbench
from workbench.simulate import calibrating, kept_calibrations
from workbench.simulate.calibration import Calibration, errors_of, machine_key
from workbench.simulate.extrapolated import extrapolated
from workbench.simulate.fitting import differs, fit
from workbench.simulate.host import Simulator
from workbench.simulate.validation import DRAWS, Validation, check_unseen, checked, validate
from workbench.store import default_root, list_runs, open_run, prepare_root, run_folder
from workbench.trace import Trace

simulator_verbs = typer.Typer()

_ROUGH = 20.0  # %: twice what the label of a sound calibration says

_RunArgs = Annotated[list[str] | None, typer.Argument(metavar="[RUN...]", help="Ids of runs, or their folders.")]


@simulator_verbs.command("calibrate")
def calibrate_command(
    recorded: _RunArgs = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the calibration; by default your own.")] = None,
    seconds: Annotated[float, typer.Option(help="How long the load may take, about.", min=1)] = calibrating.SECONDS,
    runs: RunsRoot = None,
    start_up: StartUp = None,
    as_json: JsonFlag = False,
) -> None:
    """Measure what steps cost: play a short load on a live engine, or take live runs that are on disk, and fit."""
    if recorded:
        if start_up:
            raise InputError("--set", start_up[0], "no start-up field, as nothing is started", "leave it or RUN out")
        made = fit([_trace(runs, name) for name in recorded])
    else:
        with Workbench(**start_up_fields(start_up), runs=runs) as bench, console.bars() as progress:
            calibrating.check_live(bench)  # before the start, which takes a while
            prepare_root(out or kept_calibrations.own_folder())
            bench.start(console.engine_start(progress))
            made = calibrating.calibrate(
                bench, follow=lambda setting, run: console.follow(progress, setting, run), seconds=seconds
            )
    path = kept_calibrations.save(made, out)
    if as_json:
        typer.echo(json.dumps({"path": str(path), "source": made.source, **made.as_dict()}, indent=2))
        return
    rows = [
        {"step": kind, "steps": one.steps, "median error %": one.median_pct, "P90 error %": one.p90_pct}
        for kind, one in made.fits.items()
    ]
    columns = ["step", "steps", "median error %", "P90 error %"]
    console.out.print(console.frame_table(rows, columns, f"error on {made.held_out}"))
    console.out.print(made.source, highlight=False, soft_wrap=True)
    console.out.print(_delays(made), highlight=False, soft_wrap=True)
    if max(one.median_pct for one in made.fits.values()) > _ROUGH:
        said = "these prices are rough: calibrate again while nothing else runs here, or for longer (--seconds)"
        console.err.print(said, highlight=False, soft_wrap=True)
    typer.echo(path.resolve())


@simulator_verbs.command("validate")
def validate_command(
    recorded: _RunArgs = None,
    calibrated: Annotated[
        Path | None, typer.Option("--calibration", help="File; by default the newest of the runs' model and machine.")
    ] = None,
    draws: Annotated[int, typer.Option(help="Virtual plays behind a prediction.", min=1, max=100)] = DRAWS,
    keep: Annotated[bool, typer.Option(help="Keep the errors with the calibration.")] = True,
    runs: RunsRoot = None,
    as_json: JsonFlag = False,
) -> None:
    """Play live runs again in virtual time, and print predicted against measured."""
    given = [_trace(runs, name) for name in recorded or ()]
    found = kept_calibrations.load(calibrated) if calibrated else None
    pairs = [(trace, found or _calibration_of(trace)) for trace in given or _unseen(runs, found)]
    for trace, prices in pairs:  # before the child is started, which takes a while
        check_unseen(trace, prices)
        beyond = extrapolated(trace, prices)
        if beyond:
            console.err.print(f"{trace.meta.get('id')}: {beyond}", highlight=False, soft_wrap=True)
    judged: list[tuple[Calibration, list[Validation]]] = []
    simulator = Simulator()
    try:
        with console.bars() as progress:
            task = progress.add_task("validate", total=len(pairs), note="importing vLLM's scheduler")
            simulator.start()
            for trace, prices in pairs:
                progress.update(task, note=str(trace.meta.get("id")))
                one = validate(trace, prices, simulator, draws=draws)
                if not judged or judged[-1][0] != prices:
                    judged.append((prices, []))
                judged[-1][1].append(one)
                progress.advance(task)
            progress.update(task, note="done")
    finally:
        simulator.close()
    shown = [one for _, some in judged for one in some]
    errors = errors_of(one.error_pct for one in shown)
    saved = [_keep(prices, some, calibrated) for prices, some in judged] if keep else []
    if as_json:
        told = {"label": "simulated", "errors": errors, "runs": [one.as_dict() for one in shown]}
        typer.echo(json.dumps(told | {"saved": [str(path) for path in saved]}, indent=2, default=str))
    else:
        _show(shown, errors)
        for path in saved:
            typer.echo(path.resolve())


def _show(shown: Sequence[Validation], errors: dict[str, dict[str, float]]) -> None:
    for one in shown:
        rows = json.loads(one.table.reset_index().to_json(orient="records"))
        columns = ["metric", "unit", "measured", "predicted", "error_pct"]
        console.out.print(console.frame_table(rows, columns, f"{one.run} · {one.setting}"))
        rows = json.loads(one.requests.reset_index().to_json(orient="records"))
        parts = ("measured_s", "predicted_s", "error_pct")
        columns = [
            "request",
            "class",
            "prompt_tokens",
            *(f"{name}_{part}" for name in ("ttft", "end") for part in parts),
        ]
        console.out.print(console.frame_table(rows, columns, "by request, from its planned arrival"))
        for fault in one.faults:
            console.err.print(f"{one.run}: {fault}", highlight=False, soft_wrap=True)
    rows = [{"metric": name, **error} for name, error in errors.items()]
    console.out.print(console.frame_table(rows, ["metric", "median_pct", "p90_pct", "runs"], "error, absolute"))
    for source in dict.fromkeys(one.source for one in shown):
        console.out.print(source, highlight=False, soft_wrap=True)


def _keep(prices: Calibration, found: list[Validation], path: Path | None) -> Path:
    """Write the errors where the calibration came from; one that came with the workbench is copied to the user's."""
    return kept_calibrations.save(
        checked(prices, found), path.parent if path else None, name=path.name if path else None
    )


def _trace(root: Path | None, run: str) -> Trace:
    folder = Path(run)
    return open_run(folder if (folder / "run.json").is_file() else run_folder(root, run))


def _unseen(root: Path | None, found: Calibration | None) -> list[Trace]:
    """Complete live runs of a calibrated machine and model which the fit did not see, and no load of a calibration."""
    traces = []
    frame = list_runs(root)
    for name in frame["id"] if len(frame) else ():
        trace = open_run(run_folder(root, name))
        meta = trace.meta
        if meta["status"] != "complete" or not str(meta.get("label")).startswith("live"):
            continue
        prices = found or _match(trace)
        own_load = meta.get("scenario") == calibrating.SCENARIO
        if prices is not None and not own_load and meta["id"] not in prices.runs and not differs(prices, trace):
            traces.append(trace)
    if not traces:
        where = default_root() if root is None else root
        raise InputError(
            "runs",
            f"none in {where}",
            "complete live runs of a calibrated model and machine that the calibration was not fitted to",
            "play a scenario with workbench run, or name runs",
        )
    return traces


def _match(trace: Trace) -> Calibration | None:
    engine: dict[str, Any] = trace.meta.get("engine") or {}
    config = engine.get("config") or {}
    return kept_calibrations.match(str(config.get("model")), machine_key(trace.meta), config)


def _calibration_of(trace: Trace) -> Calibration:
    label = str(trace.meta.get("label"))
    if not label.startswith("live"):
        raise InputError(f"run {trace.meta.get('id')}", label, "a live run", "play one with workbench run")
    found = _match(trace)
    if found is None:
        where = machine_key(trace.meta).get("device") or "its machine"
        raise InputError(
            f"run {trace.meta.get('id')}",
            "no calibration",
            f"one of its model and settings on {where}",
            "make one with `workbench calibrate`",
        )
    return found


def _delays(made: Calibration) -> str:
    ms = {name: 1e3 * made.delays.get(name, 0.0) for name in ("admission_s", "delivery_s")}
    return f"client and front end: {ms['admission_s']:.1f} ms to the scheduler, {ms['delivery_s']:.1f} ms back"
