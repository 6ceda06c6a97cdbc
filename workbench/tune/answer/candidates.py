"""Settings that were tried: all plays of one setting together, who is ahead, and which give nothing away."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from workbench.i18n import phrase
from workbench.tune.goal import FAILED, Goal, Objective
from workbench.tune.trial import Point, Result

_CONFIDENCE = 0.95
_TIED = 1e-9  # share by which objectives differ when they count as equal
LIKELY = "slack"  # figure that tells apart what has the same goodput
OWN_POLICIES = ("decode_first", "qos", "target_gap")  # that vLLM has no flag for
LONG_TTFT, TTFT, GAP, RATE = "long_ttft_s", "ttft_p99_s", "gap_p99_ms", "tokens_per_s"


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval.

    Attributes:
        mean: of the plays.
        low: lower end of the 95 % interval; with one play the same as the mean.
        high: upper end.
        plays: how many there are.
    """

    mean: float
    low: float
    high: float
    plays: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Interval:
        """Student's t interval of the mean; of a single value nothing is known beyond it.

        Raises:
            ValueError: there is no value.
        """
        if not values:
            raise ValueError("an interval of no values")
        mean = sum(values) / len(values)
        if len(values) < 2 or max(values) == min(values) or not all(map(math.isfinite, values)):
            return cls(mean, mean, mean, len(values))
        from scipy import stats  # here, since it takes half a second to import

        low, high = stats.t.interval(_CONFIDENCE, len(values) - 1, loc=mean, scale=stats.sem(values))
        return cls(mean, float(low), float(high), len(values))

    @property
    def words(self) -> str:
        """Such as "2.31 (95 % interval 2.2 to 2.42 of 3 plays)"; one play says so."""
        if self.plays < 2:
            return phrase("{mean:.3g} (one play)", mean=self.mean)
        return phrase(
            "{mean:.3g} (95 % interval {low:.3g} to {high:.3g} of {plays} plays)",
            mean=self.mean,
            low=self.low,
            high=self.high,
            plays=self.plays,
        )


@dataclass(frozen=True)
class Candidate:
    """One setting with all its plays.

    Attributes:
        point: the setting.
        plays: those that were measured, complete or stopped early, oldest first.
    """

    point: Point
    plays: tuple[Result, ...]

    @property
    def name(self) -> str:
        """Of the setting."""
        return self.point.name

    @cached_property
    def complete(self) -> tuple[Result, ...]:
        """The plays that went to their end."""
        return tuple(one for one in self.plays if one.state == "complete" and one.objectives)

    @cached_property
    def objectives(self) -> tuple[float, ...]:
        """Means over the complete plays; empty where there is none."""
        if not self.complete:
            return ()
        return tuple(_mean(values) for values in zip(*(one.objectives for one in self.complete), strict=True))

    @cached_property
    def figures(self) -> dict[str, float]:
        """Means over the complete plays, of the figures that all of them have."""
        if not self.complete:
            return {}
        names = [name for name in self.complete[0].figures if all(name in one.figures for one in self.complete)]
        return {name: _mean([one.figures[name] for one in self.complete]) for name in names}

    @cached_property
    def excess(self) -> dict[str, float]:
        """By constraint, that of the play that did worst; of one that was stopped early, what it had come to."""
        names = dict.fromkeys(name for one in self.plays for name in one.excess)
        return {name: max(one.excess[name] for one in self.plays if name in one.excess) for name in names}

    @property
    def feasible(self) -> bool:
        """Whether it was played to its end, and no play broke a limit."""
        return bool(self.complete) and all(over <= 0 for over in self.excess.values())

    @property
    def broken(self) -> bool:
        """Whether a play broke a limit; one that was stopped since others are better need not have."""
        return any(over > 0 for over in self.excess.values())

    @property
    def met(self) -> int:
        """Plays that met all limits."""
        return sum(one.feasible for one in self.plays)

    @property
    def worst(self) -> tuple[str, float] | None:
        """The constraint that is exceeded most and by how much, below 0 is met; failed requests where some did."""
        counted = {name: over for name, over in self.excess.items() if name != FAILED or over > 0}
        return max(counted.items(), key=lambda one: one[1], default=None)

    @property
    def engine_s(self) -> float:
        """Seconds that an engine was held for all plays."""
        return sum(one.engine_s for one in self.plays)

    def interval(self, place: int = 0) -> Interval | None:
        """Of an objective; None without a complete play."""
        return Interval.of([one.objectives[place] for one in self.complete]) if self.complete else None

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        interval = self.interval()
        return {
            "name": self.name,
            **self.point.as_dict(),
            "feasible": self.feasible,
            "plays": len(self.plays),
            "met": self.met,
            "objectives": list(self.objectives),
            "interval": [interval.low, interval.high] if interval else None,
            "figures": self.figures,
            "excess": self.excess,
            "numbers": [one.number for one in self.plays],
        }


def is_stock(point: Point) -> bool:
    """Whether plain vLLM can schedule like this."""
    return point.hot.get("policy", "chunked") not in OWN_POLICIES


def candidates_of(results: Sequence[Result]) -> list[Candidate]:
    """One for each setting that was measured, in the order in which they were first played.

    What failed or was interrupted says nothing about a setting's figures and is left out.
    """
    plays: dict[str, list[Result]] = {}
    for one in sorted(results, key=lambda one: one.number):
        if one.state in ("complete", "stopped"):
            plays.setdefault(one.point.key, []).append(one)
    return [Candidate(some[0].point, tuple(some)) for some in plays.values()]


def ranked(candidates: Sequence[Candidate], goal: Goal) -> list[Candidate]:
    """The feasible ones, the best first.

    By the goal's first objective, equals by the next ones, and what is equal in all of them by how much room the
    requests had under their promise.
    """
    feasible = [one for one in candidates if one.feasible]
    return sorted(feasible, key=lambda one: (*_losses(one, goal), -one.figures.get(LIKELY, 0.0)))


def gain(one: Candidate, other: Candidate, aim: Objective, place: int = 0) -> float:
    """By which share ``one`` is better than ``other`` in an objective; below 0 it is worse."""
    mine, theirs = one.objectives[place], other.objectives[place]
    if mine == theirs:
        return 0.0
    change = (mine - theirs) / abs(theirs) if theirs else math.copysign(math.inf, mine - theirs)
    return change if aim.direction == "maximize" else -change


def front_figures(candidates: Sequence[Candidate], goal: Goal) -> tuple[str, str, str]:
    """What the front is over: TTFT (of long prompts where all have some), gap (the one with a limit), and rate."""
    measured = [one.figures for one in candidates if one.complete]
    ttft = LONG_TTFT if measured and all(LONG_TTFT in figures for figures in measured) else TTFT
    gaps = [limit.name for limit in goal.parsed if limit.kind == "gap" and limit.of is None]
    return ttft, gaps[0] if gaps else GAP, RATE


def pareto_front(candidates: Sequence[Candidate], goal: Goal) -> list[Candidate]:
    """Those of which no other is at least as good in TTFT, gap and throughput, and better in one of them.

    Also settings that break a limit: they show what the limit costs. By gap, the shortest first.
    """
    ttft, gap, rate = front_figures(candidates, goal)
    places = [
        (one, (one.figures[ttft], one.figures[gap], -one.figures[rate]))
        for one in candidates
        if all(name in one.figures for name in (ttft, gap, rate))
    ]
    front = [one for one, at in places if not any(_dominates(other, at) for _, other in places)]
    return sorted(front, key=lambda one: one.figures[gap])


def trade_off(candidates: Sequence[Candidate], goal: Goal) -> list[Candidate]:
    """Those within the limits of which no other is as good in all objectives and better in one; the best first."""
    places = [(one, _losses(one, goal)) for one in ranked(candidates, goal)]
    return [one for one, at in places if not any(_dominates(other, at) for _, other in places)]


def _dominates(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


def _losses(one: Candidate, goal: Goal) -> tuple[float, ...]:
    """The objectives, less is better; what differs by rounding is the same."""
    signs = (-1.0 if aim.direction == "maximize" else 1.0 for aim in goal.aims)
    return tuple(_rounded(sign * value) for sign, value in zip(signs, one.objectives, strict=True))


def _rounded(value: float) -> float:
    return float(f"{value:.9g}") if math.isfinite(value) and abs(value) > _TIED else value


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def measured(name: str, excess: float, limits: Mapping[str, float]) -> float:
    """What was measured of a constraint, from its excess; of failed requests their share."""
    limit = limits.get(name)
    return excess if limit is None else (1 + excess) * limit
