"""The verbs that play: each starts one engine or more, plays on it and shows what was measured."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from workbench import console, policy_runs
from workbench import demo as demonstration
from workbench import sweep as sweeps
from workbench.cli.house import show_run
from workbench.cli.options import (
    POLICY_HELP,
    JsonFlag,
    KnobOption,
    KnobValues,
    ReportPath,
    RunsRoot,
    ScenarioArg,
    Seed,
    StartUp,
    start_up_fields,
)
from workbench.errors import InputError
from workbench.i18n import translate
from workbench.knob_options import knob_values, single_knobs
from workbench.origin import in_pieces
from workbench.policy_runs import PolicyRuns
from workbench.report.run import ReportRun
from workbench.session import Workbench
from workbench.sweep import Played
from workbench.workload.scenario import Scenario, Setting, load_scenario

play_verbs = typer.Typer()


@play_verbs.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for summary.json, report.html and the runs.")] = Path("runs/demo"),
    start_up: StartUp = None,
) -> None:
    """Play one long prompt among chats under six settings on one engine, and write a report."""
    scenario = load_scenario(demonstration.SCENARIO)
    played: list[Played] = []
    bench = Workbench.of(scenario, runs=out / demonstration.RUNS, **start_up_fields(start_up))
    _check(bench, scenario.settings)
    demonstration.prepare(out)
    with bench, console.bars() as progress:
        bench.start(console.engine_start(progress))
        console.say_engine(bench)
        for one in sweeps.hot(bench, scenario, scenario.settings, lambda s, r: console.follow(progress, s, r)):
            played.append(one)
            rows = demonstration.save_summary(out, played, _facts(played))  # after each: an interruption keeps the rest
        bench.stop()
        task = progress.add_task(translate("report"), total=None, note="")
        again = shlex.join(["workbench", "demo", *(part for text in start_up or () for part in ("--set", text))])

        def drawn(done: int, total: int, what: str) -> None:
            progress.update(task, completed=done, total=total, note=what)

        report = demonstration.save_report(out, played, rows, again, drawn)
        progress.update(task, completed=1, total=1, note=translate("written"))
    pid, label = rows[0]["engine_pid"], in_pieces(rows[0]["label"])
    title = translate("One engine (pid {pid}), {label}", pid=pid, label=label)
    console.out.print(console.settings_table(rows, title))
    typer.echo(report.resolve())


@play_verbs.command()
def run(
    scenario: ScenarioArg,
    budget: Annotated[int | None, typer.Option(help="Token budget of a step.")] = None,
    chunk: Annotated[int | None, typer.Option(help="Most prefill tokens of one request in a step; 0 is off.")] = None,
    max_running: Annotated[int | None, typer.Option(help="Most requests running at once.")] = None,
    policy: Annotated[str | None, typer.Option(help=POLICY_HELP)] = None,
    prefill_every: Annotated[int | None, typer.Option(help="decode_first: prefill on every N-th step.")] = None,
    knob: KnobOption = None,
    seed: Seed = None,
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
    given = single_knobs(knob, knobs)
    setting = Setting.of(given) if given else None
    bench = Workbench.of(chosen, runs=runs, **start_up_fields(start_up))
    _check(bench, [setting] if setting else [])
    with bench, console.bars() as progress:
        bench.start(console.engine_start(progress))
        console.say_engine(bench)
        played = bench.run(chosen, setting=setting, seed=seed)
        console.follow(progress, setting, played)
    show_run(played, as_json)
    if report:
        _report([ReportRun(setting.name if setting else chosen.name, played.trace, {}, played.slo)], report, chosen)


@play_verbs.command()
def sweep(
    scenario: ScenarioArg,
    budget: Annotated[str | None, typer.Option(help="Budgets to try, such as 64,256,1024.")] = None,
    chunk: Annotated[str | None, typer.Option(help="Chunk caps to try; 0 is off.")] = None,
    max_running: Annotated[str | None, typer.Option(help="Running caps to try.")] = None,
    policy: Annotated[str | None, typer.Option(help="Policies to try.")] = None,
    knob: KnobValues = None,
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
    options = {"budget": budget, "chunk": chunk, "max_running": max_running, "policy": policy}
    asked = knob_values(knob, options)
    settings = sweeps.grid(asked) if asked else chosen.settings
    if not settings:
        raise InputError("settings", "none", "settings in the scenario, or --budget, --knob and the like", "give some")
    fields, played = start_up_fields(start_up), []
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
                _check(bench, settings)
                bench.start(console.engine_start(progress))
                console.say_engine(bench)
                played.extend(sweeps.hot(bench, chosen, settings, watch))
    rows = [one.row for one in played]
    if as_json:
        typer.echo(json.dumps({"scenario": chosen.name, "restart": restart, "rows": rows}, indent=2, default=str))
    else:
        console.out.print(console.settings_table(rows, _headed(chosen.name, rows[0]["label"])))
    if report:
        _report([one.report for one in played], report, chosen)


@play_verbs.command()
def policies(
    scenario: ScenarioArg,
    policy: Annotated[
        str | None, typer.Option(help="Policies with commas between; by default the scenario's settings, or all.")
    ] = None,
    knob: KnobOption = None,
    seed: Seed = None,
    runs: RunsRoot = None,
    start_up: StartUp = None,
    report: ReportPath = None,
    as_json: JsonFlag = False,
) -> None:
    """Play the same workload under each policy on one engine, and compare them class by class."""
    chosen, more = load_scenario(scenario), single_knobs(knob)
    if "policy" in more:
        raise InputError("--knob policy", more["policy"], "knobs that all policies are to have", "use --policy")
    bench = Workbench.of(chosen, runs=runs, **start_up_fields(start_up))
    envelope, names = bench.engine.envelope, policy.split(",") if policy else None
    settings = [setting.replace(**more) for setting in policy_runs.choose(chosen, names, envelope)]
    if names or more:
        _check(bench, settings)
    try:
        with bench, console.bars() as progress:
            bench.start(console.engine_start(progress))
            console.say_engine(bench)
            bench.compare_policies(
                chosen, settings=settings, seed=seed, follow=lambda s, r: console.follow(progress, s, r)
            )
    finally:  # an interruption shows what there is
        if bench.compared is not None:
            _show_policies(bench.compared, as_json)
    if not bench.compared:
        raise typer.Exit(2)  # all were refused, and each reason was said
    if report:
        pairs = zip(bench.compared.settings, bench.compared, strict=True)
        _report([ReportRun(s.name, one.trace, s.given, one.slo) for s, one in pairs], report, chosen)


def _check(bench: Workbench, settings: Sequence[Setting]) -> None:
    """Asked before the start: a wrong knob should not cost one."""
    for setting in settings:
        setting.knobs(bench.engine.envelope)


def _show_policies(played: PolicyRuns, as_json: bool) -> None:
    rows = json.loads(played.table.reset_index().to_json(orient="records"))
    if as_json:
        folders = {setting.name: str(run.folder) for setting, run in zip(played.settings, played, strict=True)}
        about = {"scenario": played.scenario, "label": played.label, "origin": played.origin}
        shown = about | {"rows": rows, "refused": played.refused}
        typer.echo(json.dumps(shown | {"runs": folders}, indent=2))
        return
    if rows:
        console.out.print(console.classes_table(rows, _headed(played.scenario, played.origin or "")))
    for name, why in played.refused.items():
        console.err.print(translate("not played: {name}: {why}", name=name, why=why), highlight=False, soft_wrap=True)


def _headed(scenario: str, origin: str) -> str:
    return translate("{one}, {other}", one=scenario, other=in_pieces(origin))


def _report(reports: Sequence[ReportRun], path: Path, scenario: Scenario) -> None:
    from workbench.report.html import write_report  # here, since Altair takes two seconds to import

    written = write_report(path, reports, title=scenario.name.replace("_", " "), question=scenario.question)
    typer.echo(written.resolve())


def _facts(played: Sequence[Played]) -> dict[str, Any]:
    meta = played[-1].run.meta
    return {
        key: meta.get(key) for key in ("label", "scenario", "question", "seed", "slo", "machine", "versions", "engine")
    }
