"""A scenario on simulated hardware, each setting three times: as modelled, and at both ends of the step times' band."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.config import SLO
from workbench.engine.probe.wire import KnobChange
from workbench.errors import InputError
from workbench.simulate.facts import compute_facts_of
from workbench.simulate.hardware_setup import Setup, set_up
from workbench.simulate.host import Simulator
from workbench.simulate.job import SimJob
from workbench.simulate.outcome import play_job
from workbench.simulate.play import ask_of
from workbench.simulate.steptime.bands import Edge
from workbench.simulate.tokenizer import write_tokenizer
from workbench.simulated_config import SimulatedConfig
from workbench.trace import Trace
from workbench.workload.request import Workload
from workbench.workload.scenario import Scenario, Setting, build_workload

Told = Callable[[int, int, str], object]  # plays that are over, plays in all, what comes next
Figure = Callable[[Trace], float]


@dataclass(frozen=True)
class Banded:
    """One setting, simulated; a :class:`workbench.claims.verdict.Measured`.

    Attributes:
        setting: its knobs.
        slo: of the scenario.
        trace: with step times as modelled.
        low: every step as fast as it may be.
        high: every step as slow as it may be.
    """

    setting: Setting
    slo: SLO
    trace: Trace
    low: Trace
    high: Trace

    def band(self, figure: Figure) -> tuple[float, float, float]:
        """A figure's least, modelled and largest value over the three plays."""
        middle, *ends = (figure(trace) for trace in (self.trace, self.low, self.high))
        return min(middle, *ends), middle, max(middle, *ends)


def play_banded(
    scenario: Scenario,
    settings: Sequence[Setting] | None = None,
    *,
    simulator: Simulator | None = None,
    told: Told | None = None,
) -> dict[str, Banded]:
    """Play a scenario under each of its settings, three times each.

    Args:
        scenario: its engine is a simulated one.
        settings: in place of the scenario's own.
        simulator: one that runs and plays nothing; by default one is started, and ended afterwards.
        told: called before each play.

    Returns:
        By the setting's name, in the order of the settings.

    Raises:
        InputError: the engine is not a simulated one, there are no settings, or the hardware cannot be.
        EngineError: a play failed.
    """
    config = scenario.engine_config
    if not isinstance(config, SimulatedConfig):
        raise InputError("scenario", scenario.name, "one with engine: simulated", "add engine, gpu and count to it")
    chosen = scenario.settings if settings is None else tuple(settings)
    if not chosen:
        raise InputError("settings", "none", "at least one", "name them in the scenario")
    middle = set_up(config)
    models = {"trace": middle.step_time, "low": Edge("low", middle.step_time), "high": Edge("high", middle.step_time)}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="wb-banded-")))
        workload = build_workload(scenario, Path(write_tokenizer(folder)), config.max_model_len)
        if simulator is None:
            simulator = Simulator()
            stack.callback(simulator.close)
            simulator.start()
        found: dict[str, dict[str, Trace]] = {}
        for place, (setting, end) in enumerate((one, end) for one in chosen for end in models):
            if told is not None:
                told(place, len(chosen) * len(models), f"{setting.name}, {'as modelled' if end == 'trace' else end}")
            job = job_for(middle, scenario, workload, setting, step_time=dict(models[end].spec()))
            found.setdefault(setting.name, {})[end] = play_job(simulator, job).trace(
                **facts_of(middle, scenario, setting)
            )
    return {one.name: Banded(one, scenario.slo, **found[one.name]) for one in chosen}


def job_for(setup: Setup, scenario: Scenario, workload: Workload, setting: Setting, **fields: Any) -> SimJob:
    """The job that plays a scenario's requests under a setting; ``fields`` go before what the setup says."""
    envelope, at_s = setup.config.envelope, scenario.settings_at_s
    chosen = KnobChange(revision=1, **setting.knobs(envelope).model_dump())
    first = KnobChange(revision=0, **envelope.defaults.model_dump()) if at_s else chosen
    mine: dict[str, Any] = {
        "requests": [ask_of(one, tokens=setup.config.enable_prefix_caching) for one in workload.requests],
        "knobs": first,
        "changes": [(at_s, chosen)] if at_s else [],
        "concurrency": dict(workload.concurrency),
        "seed": workload.seed,
    }
    return setup.job(**{**mine, **fields})


def facts_of(setup: Setup, scenario: Scenario, setting: Setting) -> Mapping[str, Any]:
    """Metadata as a run on that engine has it."""
    return {
        "scenario": scenario.name,
        "setting": setting.name,
        "slo": scenario.slo.model_dump(),
        "engine": {"config": setup.config.model_dump(mode="json"), "simulated": setup.describe()},
        "compute": compute_facts_of(setup.config, setup),
    }
