"""What travels between a study and a process that plays its trials elsewhere: plain data, one JSON line a message."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from workbench.config import EngineConfig, parse
from workbench.errors import EngineError, InputError, WorkbenchError
from workbench.simulated_config import SimulatedConfig, engine_config
from workbench.tune.goal import Goal
from workbench.tune.trial import Asked, Point
from workbench.workload.scenario import Scenario


@dataclass(frozen=True)
class Job:
    """What all trials of a study have in common.

    Attributes:
        config: start-up fields that trials start from.
        scenario: what is played; files that it reads must lie at the same place on every machine.
        goal: what trials are judged by.
        ranks: most GPUs (or workers on CPUs) that a trial's engine has, since start-up fields may say so.
    """

    config: EngineConfig
    scenario: Scenario
    goal: Goal
    ranks: int = 1

    @property
    def simulated(self) -> bool:
        """Whether nothing is computed."""
        return isinstance(self.config, SimulatedConfig)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as JSON takes it."""
        return {
            "config": self.config.model_dump(mode="json"),
            "scenario": self.scenario.model_dump(mode="json", by_alias=True, exclude_none=True),
            "goal": self.goal.as_dict(),
            "ranks": self.ranks,
        }

    @classmethod
    def of_dict(cls, facts: Mapping[str, Any]) -> Self:
        """Take it from what :meth:`as_dict` gave.

        Raises:
            InputError: something in it is wrong.
        """
        scenario = parse(Scenario, facts["scenario"])
        return cls(engine_config(facts["config"]), scenario, Goal.of_dict(facts["goal"]), facts["ranks"])


@dataclass(frozen=True)
class Order:
    """One trial to play.

    Attributes:
        asked: the trial.
        error_rate: of the sequential test that may stop it early; None lets it play to its end.
        beat: goodput to beat, for the same test (requests/s).
    """

    asked: Asked
    error_rate: float | None = None
    beat: float | None = None

    @property
    def start_up(self) -> str:
        """The same text for trials that can share an engine."""
        return json.dumps(dict(self.asked.point.start_up), sort_keys=True)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as JSON takes it."""
        asked = {"number": self.asked.number, "point": self.asked.point.as_dict(), "seed": self.asked.seed}
        return {"asked": asked, "error_rate": self.error_rate, "beat": self.beat}

    @classmethod
    def of_dict(cls, facts: Mapping[str, Any]) -> Self:
        """Take it from what :meth:`as_dict` gave."""
        asked = facts["asked"]
        return cls(
            Asked(asked["number"], Point.of_dict(asked["point"]), asked["seed"]), facts["error_rate"], facts["beat"]
        )


def error_facts(error: BaseException) -> dict[str, Any]:
    """An error as plain data."""
    if isinstance(error, InputError):
        fields = {"what": error.what, "value": str(error.value), "expected": error.expected, "fix": error.fix}
        return {"input": fields, "message": str(error)}
    known = isinstance(error, WorkbenchError)
    return {"input": None, "message": str(error) if known else f"{type(error).__name__}: {one_line(error)}"}


def error_of(facts: Mapping[str, Any]) -> WorkbenchError:
    """The error that :func:`error_facts` took apart, to be raised here."""
    return InputError(**facts["input"]) if facts["input"] else EngineError(facts["message"])


def one_line(error: BaseException) -> str:
    """The last line of an error's text that says something: Ray puts a traceback before it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1].partition(" Some common causes")[0][:300] if lines else type(error).__name__
