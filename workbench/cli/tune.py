"""``workbench tune``: the best setting under hard limits, with its evidence and the command to paste."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import Progress as Bars

from workbench import console
from workbench.cli.options import (
    POLICY_HELP,
    JsonFlag,
    KnobValues,
    RunsRoot,
    Seed,
    StartUp,
    start_up_fields,
)
from workbench.cli.tune_bars import teller
from workbench.cli.tune_end import played_whole, why_nothing
from workbench.cli.tune_options import limits_of, restarts_of
from workbench.cli.tune_shown import check_targets, show, write
from workbench.errors import InputError
from workbench.i18n import counted, translate
from workbench.knob_options import knob_values
from workbench.tune.answer.confirm import ROUNDS
from workbench.tune.goal import OBJECTIVES
from workbench.tune.kept import Kept
from workbench.tune.question import Question
from workbench.tune.search.samplers import SAMPLERS
from workbench.tune.search.sequential import ERROR_RATE
from workbench.tune.search.study import Study
from workbench.tune.search.tuning import Allowance
from workbench.tune.space import RESTART, Space
from workbench.tune.trial import Player
from workbench.tune.tune import Tune

tune_verb = typer.Typer()

_OBJECTIVE, _USUAL = "goodput", Allowance()
_LIMIT_HELP = "Hard limit, such as gap_p99_ms=200, gap_max_ms=500 or ttft_p99_s.CLASS=1.5; may be given several times."


@tune_verb.command("tune")
def tune_command(
    scenario: Annotated[
        str | None, typer.Argument(help="A scenario's name (data/scenarios) or a YAML file; none with --resume.")
    ] = None,
    objective: Annotated[
        str | None,
        typer.Option(
            help=f"What to make best: {', '.join(OBJECTIVES)}; several with commas for a Pareto front.",
            show_default=_OBJECTIVE,
        ),
    ] = None,
    limit: Annotated[list[str] | None, typer.Option(help=_LIMIT_HELP)] = None,
    trials: Annotated[
        int | None,
        typer.Option(help="Trials at most, with those of an earlier session.", min=1, show_default=str(_USUAL.trials)),
    ] = None,
    engine_seconds: Annotated[float | None, typer.Option(help="Seconds that trials may hold engines for.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Minutes of the search; no trial begins later.")] = None,
    patience: Annotated[
        int | None,
        typer.Option(
            help="Trials in a row without progress that end it; three times as many before one is within the limits.",
            min=1,
            show_default=str(_USUAL.patience),
        ),
    ] = None,
    budget: Annotated[str | None, typer.Option(help="Budgets to try; by default powers of two.")] = None,
    chunk: Annotated[str | None, typer.Option(help="Chunk caps to try; 0 is off.")] = None,
    max_running: Annotated[str | None, typer.Option(help="Running caps to try.")] = None,
    policy: Annotated[str | None, typer.Option(help=f"Policies to try: {POLICY_HELP}")] = None,
    knob: KnobValues = None,
    restart: Annotated[
        list[str] | None,
        typer.Option(help=f"Start-up field to try, such as max_num_seqs=16,32; one of {', '.join(RESTART)}."),
    ] = None,
    rounds: Annotated[
        int | None,
        typer.Option(help="Fresh plays of the pick and the runner-up; 0 confirms nothing.", show_default=str(ROUNDS)),
    ] = None,
    sampler: Annotated[
        str | None, typer.Option(help=f"One of {', '.join(SAMPLERS)}; gp needs torch.", show_default=SAMPLERS[0])
    ] = None,
    error_rate: Annotated[
        float | None,
        typer.Option(
            help="Share of trials within their limits that may be stopped early; 0: what is certain.",
            show_default=str(ERROR_RATE),
        ),
    ] = None,
    simulate: Annotated[
        bool | None,
        typer.Option(
            "--simulate/--no-simulate", help="Let a calibrated simulation say where to begin.", show_default="simulate"
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Of the study; by default the scenario's with the time.")] = None,
    resume: Annotated[
        str | None,
        typer.Option(help="Go on with the study of this name, also after a kill; what is not given is as it was."),
    ] = None,
    storage: Annotated[
        str | None, typer.Option(help="Optuna storage URL; by default SQLite in the folder of the runs.")
    ] = None,
    ray: Annotated[
        str | None, typer.Option(help="Play trials side by side on a Ray cluster: local, auto, or HOST:PORT.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(help="With --ray: engines at a time; by default all there is room for.")
    ] = None,
    cores: Annotated[int | None, typer.Option(help="With --ray: logical CPUs of an engine on CPUs.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a report (HTML) of the pick, the runner-up and what lies beyond.")
    ] = None,
    serve: Annotated[
        Path | None,
        typer.Option(help="Also write the setting into this folder: serve.sh, config.yaml, container.sh."),
    ] = None,
    seed: Seed = None,
    runs: RunsRoot = None,
    start_up: StartUp = None,
    as_json: JsonFlag = False,
) -> None:
    """Find the best setting under hard limits on gaps and TTFT, and confirm it on fresh seeds."""
    if ray is None and (workers is not None or cores is not None):
        raise InputError("--workers and --cores", "no --ray", "a Ray cluster to count them on", "add --ray local")
    check_targets(report, serve)
    allowed = _given(trials=trials, engine_s=engine_seconds, minutes=minutes, patience=patience)
    more = _given(rounds=rounds, error_rate=error_rate, simulate=simulate)
    new = _given(sampler=sampler, seed=seed)
    question = None
    tried = knob_values(knob, {"budget": budget, "chunk": chunk, "max_running": max_running, "policy": policy})
    if scenario is not None:
        question = Question.of(
            scenario,
            start_up=start_up_fields(start_up),
            objectives=tuple(one.strip() for one in (_OBJECTIVE if objective is None else objective).split(",")),
            limits=limits_of(limit),
            knobs=tried,
            restart=restarts_of(restart),
            allowance=Allowance(**allowed),
            **new,
            **more,
        )
    elif resume is None:
        raise InputError("SCENARIO", "nothing", "a scenario, or --resume with a study's name", "name one")
    elif objective or limit or tried or restart or start_up or new:
        given = "options of a new study"
        raise InputError("--resume", given, "what the study began with", "leave them out, or begin a new study")
    study = None
    if resume is not None:
        if name is not None:
            raise InputError("--name", name, "no other name beside --resume", "leave it out, or begin a new study")
        same = new if question is None else {**_of_new(question), **new}
        study = Study.resume(resume, lambda facts: Space.of_dict(facts["space"]), storage=storage, root=runs, **same)
        kept = Kept(study)
        question = Question.of_facts(study.facts, kept.means, allowed, **more)
        if minutes is not None:  # they are of one session: who gives some again means it
            kept.reopen()
    if question is None:
        return
    with console.bars() as progress:
        player = None if ray is None else _on_ray(question, ray, workers, cores, runs, progress)
        tune = Tune(question, runs=runs, storage=storage, name=name, study=study, player=player, tell=teller(progress))
        tune.open()
        console.err.print(_begins(tune, _ray_words(ray, workers, cores)), markup=False, highlight=False, soft_wrap=True)
        try:
            tune.run()
        finally:  # an interruption shows what there is
            progress.stop()
            if tune.results or tune.why:
                show(tune, as_json)
    nothing = why_nothing(tune)
    for path in write(tune, report if nothing is None or played_whole(tune) else None, None if nothing else serve):
        console.err.print(translate("written: {path}", path=path), highlight=False, soft_wrap=True)
    if nothing is not None:
        raise nothing


def _on_ray(
    question: Question, address: str, workers: int | None, cores: int | None, runs: Path | None, progress: Bars
) -> Player:
    """What plays trials on a cluster, and says what happens there."""
    from workbench.tune.ray.player import RayPlayer

    def tell(text: str) -> None:
        if not text.startswith("trial ") or "lost" in text:
            console.err.print(f"Ray: {text}", highlight=False, soft_wrap=True)

    player = RayPlayer(
        question.scenario,
        question.goal,
        question.space,
        address=address,
        workers=workers,
        cores=cores,
        runs=runs,
        error_rate=question.error_rate,
        progress=console.engine_start(progress),
        tell=tell,
    )
    player.start()  # before there is a study: an address at which nobody answers should not leave one
    return player


def _of_new(question: Question) -> dict[str, Any]:
    """What must be as the study has it, where a scenario is named beside --resume."""
    return {"goal": question.goal.as_dict(), "space": question.space.as_dict(), **question.facts}


def _given(**options: Any) -> dict[str, Any]:
    """Those that were given."""
    return {name: value for name, value in options.items() if value is not None}


def _ray_words(ray: str | None, workers: int | None, cores: int | None) -> str:
    given = {"--ray": ray, "--workers": workers, "--cores": cores}
    words = [[name, str(value)] for name, value in given.items() if value is not None]
    return "".join(f" {shlex.join(pair)}" for pair in words)


def _begins(tune: Tune, on_ray: str) -> str:
    question = tune.question
    starts = len(question.space.starts())
    return translate(
        "study {name}: {goal}; {settings}{engines}. To go on with it: {command}",
        name=tune.name,
        goal=question.goal.words,
        settings=counted("{n:,} setting", "{n:,} settings", question.settings),
        engines=translate(" on each of {n} engines", n=starts + 1) if starts else "",
        command=f"{tune.again}{on_ray}",
    )
