"""A trial: a place of the search space, what a player is asked to play there, and what came of it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from workbench.tail import Batch
from workbench.workload.request import Workload
from workbench.workload.setting import Setting


@dataclass(frozen=True)
class Point:
    """One place of the search space.

    Attributes:
        hot: fields of :class:`workbench.workload.setting.Setting`, such as budget, chunk, policy, target_gap_ms.
        start_up: start-up fields that differ from the study's own configuration; empty for a hot trial.
    """

    hot: Mapping[str, Any] = field(default_factory=dict)
    start_up: Mapping[str, Any] = field(default_factory=dict)

    @property
    def setting(self) -> Setting:
        """The hot knobs as they are played.

        Raises:
            EnvelopeError: a name or a value is wrong.
        """
        return Setting.of(self.hot).model_copy(update={"name": self.name})

    @property
    def name(self) -> str:
        """Such as "budget 256 chunk 128 qos", start-up fields last."""
        named = [*self.hot.items(), *self.start_up.items()]
        words = [str(value) if name == "policy" else f"{name} {_word(name, value)}" for name, value in named]
        return " ".join(words) or "as started"

    @property
    def key(self) -> str:
        """The same text for the same place, whatever the order of its fields."""
        return json.dumps([dict(self.hot), dict(self.start_up)], sort_keys=True)

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"hot": dict(self.hot), "start_up": dict(self.start_up)}

    @classmethod
    def of_dict(cls, facts: Mapping[str, Any]) -> Self:
        """Take it from what :meth:`as_dict` gave."""
        return cls(dict(facts["hot"]), dict(facts["start_up"]))


@dataclass(frozen=True)
class Asked:
    """What a player is asked to play.

    Attributes:
        number: of the trial in its study.
        point: where.
        seed: of the workload.
    """

    number: int
    point: Point
    seed: int


@dataclass(frozen=True)
class Result:
    """What came of a trial.

    Attributes:
        number: of the trial in its study.
        point: where.
        seed: of the workload.
        state: "complete", "stopped" (early, by the sequential test), "failed" or "interrupted".
        figures: of the run, flat, the unit in the name (``gap_p99_ms``, ``ttft_p99_s.chat``); see
            :meth:`workbench.tune.goal.Goal.judge`.
        objectives: in the order of the goal's, each in its own unit; empty where nothing was measured.
        excess: by constraint, measured / limit - 1; 0 or less is met.
        engine_s: seconds that an engine was held for it; virtual ones where it is simulated.
        label: live CPU, live GPU, or simulated with its error (:func:`workbench.origin.origin_words`).
        run: folder of the run.
        error: why it failed or was stopped.
    """

    number: int
    point: Point
    seed: int
    state: str
    figures: Mapping[str, float] = field(default_factory=dict)
    objectives: tuple[float, ...] = ()
    excess: Mapping[str, float] = field(default_factory=dict)
    engine_s: float = 0.0
    label: str = ""
    run: str | None = None
    error: str | None = None

    @property
    def feasible(self) -> bool:
        """Whether it was played to its end within all limits."""
        return self.state == "complete" and bool(self.objectives) and all(over <= 0 for over in self.excess.values())

    @property
    def worst(self) -> tuple[str, float] | None:
        """The constraint that is exceeded most, and its excess; also where that is below 0. None without any."""
        return max(self.excess.items(), key=lambda one: one[1], default=None)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as JSON takes it."""
        return {
            "number": self.number,
            "point": self.point.as_dict(),
            "seed": self.seed,
            "state": self.state,
            "figures": {name: value for name, value in self.figures.items() if math.isfinite(value)},
            "objectives": [one if math.isfinite(one) else None for one in self.objectives],  # JSON has no infinity
            "excess": dict(self.excess),
            "engine_s": self.engine_s,
            "label": self.label,
            "run": self.run,
            "error": self.error,
        }

    @classmethod
    def of_dict(cls, facts: Mapping[str, Any]) -> Self:
        """Take it from what :meth:`as_dict` gave."""
        rest = {name: facts[name] for name in facts if name not in ("point", "objectives")}
        objectives = tuple(math.inf if one is None else one for one in facts["objectives"])
        return cls(point=Point.of_dict(facts["point"]), objectives=objectives, **rest)


@dataclass(frozen=True)
class Stop:
    """Why a trial need not be played to its end.

    Attributes:
        constraint: that it cannot meet any more; empty where somebody stopped the study.
        excess: measured / limit - 1 so far, above 0; 0 where it is no limit that is missed.
        why: in words.
        reach: the first objective's best possible value, where that is why; None else.
    """

    constraint: str
    excess: float
    why: str
    reach: float | None = None


class Watch(Protocol):
    """Looks at a trial while it is played, and says when to stop it."""

    def begin(self, workload: Workload) -> None:
        """A trial begins, with this workload; nothing is known of it yet."""

    def look(self, batches: Sequence[Batch]) -> Stop | None:
        """Take rows that are new, as a :class:`workbench.tail.Tail` gives them; None is to go on."""


class UntilStopped:
    """A watch that lets a play go to its end, but for somebody who stops the study.

    Args:
        stopped: whether somebody has.
    """

    def __init__(self, stopped: Callable[[], bool]) -> None:
        self._stopped = stopped

    def begin(self, workload: Workload) -> None:
        """Nothing depends on what is played."""

    def look(self, batches: Sequence[Batch]) -> Stop | None:  # noqa: ARG002  part of the protocol
        """None until it is stopped."""
        return Stop("", 0.0, "the study was stopped") if self._stopped() else None


class Player(Protocol):
    """Plays trials, one at a time: live on one engine, simulated, or elsewhere.

    Attributes:
        label: where its numbers come from.
    """

    label: str

    def play(self, asked: Asked, watch: Watch | None = None) -> Result:
        """Play one trial; what goes wrong with that trial alone is in the result.

        Raises:
            WorkbenchError: nothing can be played any more.
        """

    def close(self) -> None:
        """End what it holds; may be called twice."""


def _word(name: str, value: Any) -> str:
    if isinstance(value, bool) or (name == "chunk" and value == 0):
        return "on" if value else "off"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
