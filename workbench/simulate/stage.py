"""A scenario ready to be played on simulated engines, without a run folder: one child for all plays."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.engine.probe.wire import KnobChange
from workbench.errors import InputError
from workbench.simulate.facts import compute_facts_of
from workbench.simulate.hardware_setup import Setup
from workbench.simulate.host import Simulator
from workbench.simulate.job import SimJob
from workbench.simulate.made_up_files import write_tokenizer
from workbench.simulate.outcome import play_job
from workbench.simulate.play import ask_of
from workbench.simulated_config import SimulatedConfig
from workbench.trace import Trace
from workbench.workload.build import build_workload
from workbench.workload.request import Workload
from workbench.workload.scenario import Scenario, Setting


@dataclass(frozen=True)
class Stage:
    """What all plays of a scenario have in common; made with :func:`staged`.

    Attributes:
        scenario: what is played.
        config: the engine that it asks for.
        workload: its requests.
        simulator: plays them.
    """

    scenario: Scenario
    config: SimulatedConfig
    workload: Workload
    simulator: Simulator

    def play(self, setup: Setup, setting: Setting, **fields: Any) -> Trace:
        """Play it to the end.

        Args:
            setup: the engine.
            setting: the knobs.
            **fields: of the job, in place of what the setup says.

        Raises:
            EnvelopeError: the knobs do not fit the engine.
            EngineError: it could not be played to the end.
        """
        return play_job(self.simulator, self._job(setup, setting, fields)).trace(**self._facts(setup, setting))

    def _job(self, setup: Setup, setting: Setting, fields: Mapping[str, Any]) -> SimJob:
        envelope, at_s = setup.config.envelope, self.scenario.settings_at_s
        chosen = KnobChange(revision=1, **setting.knobs(envelope).model_dump())
        first = KnobChange(revision=0, **envelope.defaults.model_dump()) if at_s else chosen
        tokens = setup.config.enable_prefix_caching
        mine: dict[str, Any] = {
            "requests": [ask_of(one, tokens=tokens) for one in self.workload.requests],
            "knobs": first,
            "changes": [(at_s, chosen)] if at_s else [],
            "concurrency": dict(self.workload.concurrency),
            "seed": self.workload.seed,
        }
        return setup.job(**{**mine, **fields})

    def _facts(self, setup: Setup, setting: Setting) -> Mapping[str, Any]:
        """Metadata as a run on that engine has it."""
        return {
            "scenario": self.scenario.name,
            "setting": setting.name,
            "slo": self.scenario.slo.model_dump(),
            "engine": {"config": setup.config.model_dump(mode="json"), "simulated": setup.describe()},
            "compute": compute_facts_of(setup.config, setup),
        }


@contextmanager
def staged(scenario: Scenario, simulator: Simulator | None = None) -> Iterator[Stage]:
    """Build the requests of a scenario, and have a simulator.

    Args:
        scenario: its engine is a simulated one.
        simulator: one that runs and plays nothing; by default one is started, and ended afterwards.

    Raises:
        InputError: the engine is not a simulated one, or the scenario cannot be built.
        EngineStartError: the simulator did not come up.
    """
    config = scenario.engine_config
    if not isinstance(config, SimulatedConfig):
        raise InputError("scenario", scenario.name, "one with engine: simulated", "add engine, gpu and count to it")
    with tempfile.TemporaryDirectory(prefix="wb-stage-") as folder:
        workload = build_workload(scenario, write_tokenizer(Path(folder)), config.max_model_len)
    mine = simulator or Simulator()
    try:
        if mine is not simulator:
            mine.start()
        yield Stage(scenario, config, workload, mine)
    finally:
        if mine is not simulator:
            mine.close()
