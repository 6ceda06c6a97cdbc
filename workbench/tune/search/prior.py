"""What a simulation of the space says before anything is measured, and what is left of it as measurements come in.

The simulator is near, not right: a calibrated one is some per cent off in gaps and TTFT. So its figures are not mixed
with measured ones. They say what to try first, and each measurement says by which factor they are off around there: a
prediction is the simulated figure times the mean factor of what was measured, the nearer in the space the heavier. When
no point that is left is predicted to be better, there is no reason to go on.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.config import EngineConfig
from workbench.errors import InputError
from workbench.simulated_config import SimulatedConfig
from workbench.tune.goal import FAILED, Goal
from workbench.tune.neighbours import distance
from workbench.tune.search.best import TIED
from workbench.tune.space import Space
from workbench.tune.trial import Asked, Player, Point, Result

MOST = 96  # plays of a simulation
_AT_RANDOM = 0.6  # of them, where the space has more points; the others are next to the best of these
_REACH = 3.0  # places after which a measurement counts a third
_LEAST = 0.02  # of the largest objective: what is added to both sides of a factor, since a goodput may be 0
_UNSURE = 0.05  # share by which a prediction may exceed a limit and still be tried

Tell = Callable[[int, int, str], None]  # plays done, plays in all, what is played


@dataclass(frozen=True)
class Predicted:
    """What is expected of a point.

    Attributes:
        point: where.
        objective: the goal's first, in its own unit.
        excess: of the constraint that is exceeded most; 0 or less is within all limits.
        slack: tells apart what has the same objective.
    """

    point: Point
    objective: float
    excess: float
    slack: float


class Prior:
    """Simulated results of a space's points.

    Args:
        results: one a point.
        goal: of the study.
        space: of the study.
    """

    def __init__(self, results: Iterable[Result], goal: Goal, space: Space) -> None:
        self._goal, self._space = goal, space
        self.results = [one for one in results if one.objectives and one.state == "complete"]
        self._by_key = {one.point.key: one for one in self.results}
        self._sign = 1 if goal.aims[0].direction == "maximize" else -1
        finite = [abs(one.objectives[0]) for one in self.results if math.isfinite(one.objectives[0])]
        self._eps = _LEAST * max(finite, default=1.0) or 1.0

    def predicted(self, measured: Sequence[Result]) -> list[Predicted]:
        """All points, the most promising first: within the limits by objective, then the others by their excess."""
        known = [
            (one, self._by_key[one.point.key])
            for one in measured
            if one.objectives and one.state in ("complete", "stopped") and one.point.key in self._by_key
        ]
        found = [self._predict(one, known) for one in self.results]
        within = [self._sign * one.objective for one in found if one.excess <= 0]
        return sorted(found, key=lambda one: self._rank(one, max(within, default=0.0)))

    def suggest(self, measured: Sequence[Result], best: Result | None, tried: Container[str]) -> Point | None:
        """The most promising point that was not tried; None when none is likely to be better than the best so far.

        Args:
            measured: trials that ended.
            best: of these.
            tried: keys of the points that were tried or are being played.
        """
        for one in self.predicted(measured):
            if one.point.key in tried:
                continue
            if best is None:
                return one.point
            if one.excess <= _UNSURE and self._gains(one.objective, best.objectives[0]):
                return one.point
        return None

    def _gains(self, predicted: float, best: float) -> bool:
        return self._sign * (predicted - best) > TIED * abs(best)

    def _rank(self, one: Predicted, top: float) -> tuple[bool, float, float]:
        """What is within a hundredth of the best is as good, and the one with more room goes first."""
        if one.excess > 0:
            return True, one.excess, 0.0
        behind = top - self._sign * one.objective
        return False, max(behind - TIED * abs(top), 0.0), -one.slack

    def _predict(self, one: Result, known: Sequence[tuple[Result, Result]]) -> Predicted:
        weights = [math.exp(-distance(one.point, mine.point, self._space) / _REACH) for mine, _ in known]

        def factor(read: Callable[[Result], float | None], eps: float) -> float:
            """Measured over simulated, around here."""
            total = logs = 0.0
            for weight, (mine, theirs) in zip(weights, known, strict=True):
                measured, simulated = read(mine), read(theirs)
                if measured is not None and simulated is not None and measured + eps > 0 and simulated + eps > 0:
                    total += weight
                    logs += weight * math.log((measured + eps) / (simulated + eps))
            return math.exp(logs / total) if total > 0 else 1.0

        def objective(result: Result) -> float | None:
            return result.objectives[0] if math.isfinite(result.objectives[0]) else None

        value = (one.objectives[0] + self._eps) * factor(objective, self._eps) - self._eps
        excess = {name: one.excess.get(name, -1.0) for name in self._goal.limits}
        over = [
            (had + 1) * factor(lambda result, name=name: _ratio(result, name), 1e-6) - 1  # type: ignore[misc]
            for name, had in excess.items()
        ]
        failed = one.excess.get(FAILED, 0.0)
        over += [failed] if failed > 0 else []
        return Predicted(one.point, value, max(over, default=-1.0), one.figures.get("slack", 0.0))


def simulate(
    player: Player,
    space: Space,
    goal: Goal,
    *,
    seed: int = 0,
    most: int = MOST,
    tell: Tell | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Prior:
    """Play the space, or as much of it as ``most`` plays allow, on a simulator.

    Args:
        player: simulates; it is not closed.
        space: of the study, hot points alone.
        goal: of the study.
        seed: of the workload and of what is drawn.
        most: plays.
        tell: told of each play before it begins.
        stopped: asked before each play.

    Raises:
        InputError: the scenario does not fit the simulated engine.
        EngineError: the simulator does not come up.
    """
    points = list(space.points())
    rng = random.Random(seed)  # noqa: S311  a search, not a secret
    first = rng.sample(points, int(most * _AT_RANDOM)) if len(points) > most else points
    results: list[Result] = []

    def play(some: Iterable[Point]) -> None:
        for point in some:
            if stopped():
                return
            if tell is not None:
                tell(len(results), min(most, len(points)), point.name)
            results.append(player.play(Asked(len(results), point, seed)))

    play(first)
    played = {point.key for point in first}
    while len(results) < min(most, len(points)) and not stopped():
        best = Prior(results, goal, space).predicted(())[:3]
        left = [point for point in points if point.key not in played]
        left.sort(key=lambda point: min((distance(point, one.point, space) for one in best), default=0.0))
        few = left[: max(1, min(most - len(results), most // 8))]
        played |= {point.key for point in few}
        play(few)
    return Prior(results, goal, space)


def simulated_config(config: EngineConfig, gpu: str | None = None) -> SimulatedConfig | None:
    """How a live engine is simulated; None where nothing is known of how long its steps take.

    Args:
        config: of the live engine.
        gpu: kind of GPU that it runs on; None is this machine's processor, which needs a calibration of the model
            (``workbench calibrate``).
    """
    from workbench.simulate.hardware_setup import set_up  # here, since a study without a simulation needs none of it

    if isinstance(config, SimulatedConfig):
        return config
    fields: dict[str, Any] = {name: getattr(config, name) for name in EngineConfig.model_fields}
    how = {"gpu": "cpu", "step_time": "calibrated"} if gpu is None else {"gpu": gpu}
    made = SimulatedConfig(**fields, **how)
    if gpu is not None:
        set_up(made)
        return made
    try:
        set_up(made)
    except InputError:
        return None
    return made


def _ratio(result: Result, name: str) -> float | None:
    over: Mapping[str, float] = result.excess
    return over[name] + 1 if name in over else None
