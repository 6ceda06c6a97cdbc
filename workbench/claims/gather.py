"""Gets the evidence: plays on one live engine or a simulated one, or opens runs that were recorded.

All live runs share one engine start: the three scenarios ask for the same engine. Whatever was played before an
interruption or an error stays in the evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.claims.evidence import Asked, Evidence
from workbench.claims.oom_rate import play_chunking
from workbench.claims.resolved import resolve, stand_in, stock
from workbench.claims.verdict import Measured
from workbench.engine.probe.compat import installed_vllm
from workbench.errors import InputError
from workbench.i18n import marked, phrase
from workbench.presets import preset
from workbench.session import Workbench
from workbench.simulate.banded import play_banded
from workbench.simulate.host import Simulator
from workbench.store import handed_over
from workbench.workload.scenario import load_scenario

Tell = Callable[[str, str], None]  # a stage, and what of it comes next
SCENARIOS = ("claims_prompt", "claims_pool", "claims_prefix")
ARTICLE = "articles_c14"
RECORDED = Path("data/runs")
# A model and a GPU on which these loads take about as long as a small model takes on a laptop.
STAND_IN_ENGINE: Mapping[str, Any] = {"engine": "simulated", "model": "qwen2.5-7b", "gpu": "L40S", "count": 1}
_BLOCKS = "--num-gpu-blocks-override"


@dataclass(frozen=True)
class Play:
    """One run: a scenario under one of its settings.

    Attributes:
        scenario: its name.
        setting: name of the setting.
        same_words: the prefix cache is emptied before, and every such run has the same prompts.
    """

    scenario: str
    setting: str
    same_words: bool = False


def plays() -> list[Play]:
    """All runs, in the order in which they are played."""
    found = []
    for name in SCENARIOS:
        scenario = load_scenario(name)
        cached = any(stream.shared_prefix for stream in scenario.streams)
        found += [Play(name, setting.name, cached) for setting in scenario.settings]
    return found


def play_on(bench: Workbench, evidence: Evidence, tell: Tell) -> None:
    """Play them on an engine that is ready, one after the other.

    Raises:
        WorkbenchError: the engine died, or a run could not be recorded; the runs before it are in the evidence.
    """
    every = plays()
    for number, play in enumerate(every, 1):
        scenario = load_scenario(play.scenario)
        setting = next(one for one in scenario.settings if one.name == play.setting)
        what = {"number": number, "all": len(every), "scenario": play.scenario, "setting": play.setting}
        tell(marked("run"), phrase("{number} of {all}: {scenario}, {setting}", **what))
        if play.same_words:
            bench.reset_prefix_cache()
        run = bench.run(scenario, setting=setting, salt=0 if play.same_words else None)
        try:
            run.wait()
        except KeyboardInterrupt:
            bench.stop_load(5.0)
            raise
        evidence.runs.append(run)


def live(evidence: Evidence, tell: Tell, runs: Path | None = None, start_up: Mapping[str, Any] | None = None) -> None:
    """Start one engine, play all runs on it, and ask vLLM about the command lines.

    Args:
        evidence: grows.
        tell: of each stage.
        runs: folder that they are recorded in.
        start_up: fields in place of those of the scenarios.

    Raises:
        WorkbenchError: the engine did not come up or died, or a run could not be recorded.
    """
    with Workbench.of(load_scenario(SCENARIOS[0]), runs=runs, **(start_up or {})) as bench:
        bench.start(lambda _elapsed, what: tell(marked("engine"), what))
        play_on(bench, evidence, tell)
        evidence.asked = ask(tell, bench.engine.describe())  # last: it is busy for seconds, and no run may be disturbed


def simulated(evidence: Evidence, tell: Tell, runs: Path | None = None) -> None:
    """Play the same runs in virtual time, on :data:`STAND_IN_ENGINE`.

    Raises:
        WorkbenchError: the simulator did not come up, or a run failed.
    """
    fields = dict(load_scenario(SCENARIOS[0]).engine)
    blocks = dict(zip(*[iter(fields.pop("extra_args"))] * 2, strict=True))[_BLOCKS]
    del fields["kv_cache_mib"]  # of a GPU that has more
    with Workbench(runs=runs, kv_blocks=int(blocks), **(fields | dict(STAND_IN_ENGINE))) as bench:
        bench.start(lambda _elapsed, what: tell(marked("simulator"), what))
        play_on(bench, evidence, tell)


def recorded(root: Path | None = None) -> Iterator[Evidence]:
    """The runs of a folder, those of live engines apart from simulated ones; by default those in data/runs.

    Raises:
        InputError: there is no run.
    """
    root = handed_over(RECORDED / "x").parent if root is None else root
    runs = [Workbench.open(path.parent) for path in sorted(root.glob("*/run.json"))]
    if not runs:
        raise InputError("runs", root, "a folder with recorded runs", "play some, or leave --runs out for data/runs")
    for of_simulator in (False, True):
        some: list[Measured] = [run for run in runs if (run.meta.get("label") == "simulated") is of_simulator]
        if some:
            yield Evidence("recorded", some)


def articles(evidence: Evidence, tell: Tell) -> None:
    """Simulate the article's own load on its own GPUs, for C14 and C16.

    Raises:
        WorkbenchError: the simulator did not come up, or a play failed.
    """
    scenario = load_scenario(ARTICLE)
    policies = [setting for setting in scenario.settings if setting.policy != "target_gap"]  # which is none of its
    simulator = Simulator()
    tell("8 x H100", marked("starting the simulator"))
    simulator.start()
    try:
        evidence.article = play_banded(
            scenario,
            policies,
            simulator=simulator,
            told=lambda done, total, name: tell(
                "8 x H100", phrase("{number} of {all}: {name}", number=done + 1, all=total, name=name)
            ),
        )
        tell("8 x H100", marked("with and without chunks"))
        evidence.engines = play_chunking(scenario, simulator=simulator)
    finally:
        simulator.close()


def ask(tell: Tell, engine: Mapping[str, Any] | None = None) -> Asked:
    """Ask the installed vLLM what it resolves the command lines of C6 and C8 to.

    Args:
        tell: that it is asked.
        engine: ``describe()`` of one that runs.

    Raises:
        EngineError: it did not answer, or refused a command.
    """
    tell("vLLM", marked("asked what it resolves two command lines to"))
    without_flags, article = resolve(stock(), stand_in(preset("article").config))
    name, version = installed_vllm() or ("vLLM", "of unknown version")
    return Asked(without_flags, article, engine or {}, f"{name} {version}")
