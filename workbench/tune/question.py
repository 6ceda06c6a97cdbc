"""What a study is asked: which load, goal and space, and how much may be spent on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from workbench.attached_config import AttachedConfig
from workbench.config import SLO, EngineConfig, parse
from workbench.errors import InputError, ScenarioError
from workbench.simulated_config import engine_config
from workbench.tune.answer.confirm import ROUNDS
from workbench.tune.goal import Goal
from workbench.tune.search.samplers import SAMPLERS
from workbench.tune.search.sequential import ERROR_RATE, Sequential
from workbench.tune.search.tuning import Allowance
from workbench.tune.space import Space
from workbench.workload.scenario import Scenario, load_scenario


@dataclass(frozen=True)
class Question:
    """A question, checked when it is made; no engine is needed for that.

    Attributes:
        scenario: what every trial plays.
        goal: what is looked for.
        space: where.
        allowance: how much may be spent.
        sampler: of :data:`workbench.tune.search.samplers.SAMPLERS`.
        seed: of the search and its workloads.
        rounds: fresh plays of the pick and of the runner-up; 0 confirms nothing.
        simulate: whether a simulation says where to begin, where the engine is live and can be simulated.
        error_rate: of the sequential test that stops hopeless trials; None plays every trial to its end.

    Raises:
        InputError: there is no such sampler, or the rounds or the error rate are none.
    """

    scenario: Scenario
    goal: Goal
    space: Space
    allowance: Allowance = field(default_factory=Allowance)
    sampler: str = SAMPLERS[0]
    seed: int = 0
    rounds: int = ROUNDS
    simulate: bool = True
    error_rate: float | None = ERROR_RATE

    def __post_init__(self) -> None:
        rounds = self.rounds
        if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 0:
            raise InputError("rounds", rounds, "a whole number, 0 or more", "0 confirms nothing, 3 is usual")
        if self.sampler not in SAMPLERS:
            raise InputError("--sampler", self.sampler, f"one of {', '.join(SAMPLERS)}", "choose one of these")
        if self.error_rate is not None:
            Sequential(self.goal, self.error_rate)  # it says what is wrong

    @classmethod
    def of(
        cls,
        scenario: Scenario | str | Path,
        *,
        config: EngineConfig | None = None,
        start_up: Mapping[str, Any] | None = None,
        objectives: Sequence[str] = ("goodput",),
        limits: Mapping[str, float] | None = None,
        slo: SLO | None = None,
        knobs: Mapping[str, Sequence[Any]] | None = None,
        restart: Mapping[str, Sequence[Any]] | None = None,
        seed: int | None = None,
        allowance: Allowance | None = None,
        **more: Any,
    ) -> Self:
        """Ask.

        Args:
            scenario: a name, a file or an object.
            config: of the engine; by default what the scenario asks for.
            start_up: start-up fields that go before those, such as model, or engine, gpu and count.
            objectives: see :class:`workbench.tune.goal.Goal`.
            limits: the same.
            slo: what goodput is held against; by default the scenario's.
            knobs: values to try by hot knob, in place of those chosen here.
            restart: values to try by start-up field; each takes an engine start.
            seed: by default the scenario's.
            allowance: how much may be spent.
            **more: sampler, rounds, simulate, error_rate.

        Raises:
            InputError: something is wrong or does not fit together.
        """
        scenario = scenario if isinstance(scenario, Scenario) else load_scenario(scenario)
        if config is None:
            config = engine_config({**scenario.engine, **(start_up or {})})
        elif start_up:
            config = config.replace(**start_up)
        if isinstance(config, AttachedConfig):
            can = "one that is started here, live or simulated"
            raise InputError("engine of a study", "attached", can, "somebody else's knobs cannot be turned")
        goal = Goal(tuple(objectives), dict(limits or {}), slo or scenario.slo).check(scenario, config.max_model_len)
        space = Space.of(scenario, config, goal, given=knobs, restart=restart)
        seed = scenario.seed if seed is None else seed
        return cls(scenario, goal, space, allowance or Allowance(), seed=seed, **more)

    @property
    def facts(self) -> dict[str, Any]:
        """Plain data that a study keeps, to be asked again when it is gone on with."""
        return {"scenario": self.scenario.model_dump(mode="json", by_alias=True, exclude_none=True)}

    @property
    def means(self) -> dict[str, Any]:
        """How much may be spent and how it is played, as plain data; another session of a study may change it."""
        named = {name: getattr(self, name) for name in ("rounds", "simulate", "error_rate")}
        return {"allowance": asdict(self.allowance), **named}

    @classmethod
    def of_facts(
        cls,
        facts: Mapping[str, Any],
        means: Mapping[str, Any] | None = None,
        allowed: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Self:
        """The question of a study that was kept, see :attr:`workbench.tune.search.study.Study.facts`.

        Args:
            facts: of the study.
            means: of its last session, see :attr:`means`.
            allowed: fields of the allowance in place of those.
            **more: rounds, simulate, error_rate, in place of those.

        Raises:
            InputError: it is not one that can be asked in this version of the workbench.
        """
        scenario = parse(Scenario, facts["scenario"], error=ScenarioError)
        goal, space = Goal.of_dict(facts["goal"]), Space.of_dict(facts["space"])
        rest: dict[str, Any] = {"allowance": {}, **(means or {}), **more}
        rest["allowance"] = Allowance(**{**rest["allowance"], **(allowed or {})})
        return cls(scenario, goal, space, seed=facts["seed"], sampler=facts["sampler"], **rest)

    @property
    def settings(self) -> int:
        """Settings in the space, hot ones."""
        return sum(1 for _ in self.space.points())
