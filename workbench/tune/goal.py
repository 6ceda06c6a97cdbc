"""What a study looks for: objectives, hard limits, and what a trace says about them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from workbench.config import SLO, parse
from workbench.errors import InputError
from workbench.i18n import phrase, phrases
from workbench.metrics.requests import LONG_PROMPT
from workbench.trace import Trace
from workbench.tune.figures import figures_of
from workbench.workload.scenario import Scenario
from workbench.workload.stream import plan

FAILED = "failed requests"  # the constraint that every goal has
_LIMIT = re.compile(r"(?P<kind>gap|ttft)_(?P<part>p50|p90|p99|max)_(?P<unit>ms|s)(?:\.(?P<of>.+))?")
_UNITS = {"gap": "ms", "ttft": "s"}
_PARTS = ("p50", "p90", "p99", "max")  # each at least the one before
_NAMES = "gap_p50_ms, gap_p90_ms, gap_p99_ms, gap_max_ms, ttft_p50_s, ttft_p90_s, ttft_p99_s, ttft_max_s"
FAR = 1e6  # in place of an excess that has no bound, and of infinity, which samplers cannot rank


@dataclass(frozen=True)
class Objective:
    """One thing to make as large or as small as can be.

    Attributes:
        name: as it is asked for.
        figure: whose value it is.
        direction: what is better, in Optuna's words.
        unit: of the figure.
        words: for tables and charts.
    """

    name: str
    figure: str
    direction: Literal["maximize", "minimize"]
    unit: str
    words: str

    def better(self, one: float, other: float) -> bool:
        """Whether ``one`` is better than ``other``."""
        return one > other if self.direction == "maximize" else one < other


OBJECTIVES: Mapping[str, Objective] = {
    one.name: one
    for one in (
        Objective("goodput", "goodput_per_s", "maximize", "requests/s", "goodput"),
        Objective("throughput", "tokens_per_s", "maximize", "tokens/s", "prompt and output throughput"),
        Objective("output_throughput", "output_tokens_per_s", "maximize", "tokens/s", "output throughput"),
        Objective("long_ttft", "long_ttft_s", "minimize", "s", "long prompt's TTFT"),
        Objective("ttft_p99", "ttft_p99_s", "minimize", "s", "TTFT P99"),
        Objective("gap_p99", "gap_p99_ms", "minimize", "ms", "gap P99"),
        Objective("gap_max", "gap_max_ms", "minimize", "ms", "longest gap"),
    )
}


@dataclass(frozen=True)
class Limit:
    """A hard limit, taken apart: ``ttft_p99_s.chat`` is the P99 of TTFT of the class chat, in seconds.

    Attributes:
        name: as it was given; also the name of the figure.
        kind: "gap" or "ttft".
        part: "p50", "p90", "p99" or "max".
        of: class; None is all of them pooled.
        value: the limit, in the unit of the name.
    """

    name: str
    kind: str
    part: str
    of: str | None
    value: float

    @property
    def share(self) -> float:
        """Share of gaps, or of requests, that may lie above the limit: 0.01 for P99, 0 for the maximum."""
        return 0.0 if self.part == "max" else round(1 - int(self.part[1:]) / 100, 4)

    @classmethod
    def of_text(cls, name: str, value: Any) -> Self:
        """Read one.

        Raises:
            InputError: the name is not known, or the value is not above 0.
        """
        found = _LIMIT.fullmatch(name)
        if found is None or found["unit"] != _UNITS[found["kind"]]:
            fix = "add .CLASS for one class of requests, such as ttft_p99_s.chat"
            raise InputError("limit", name, f"one of {_NAMES}", fix)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise InputError(f"limit {name}", value, f"a number of {found['unit']} above 0", "allow some time")
        return cls(name, found["kind"], found["part"], found["of"], float(value))


@dataclass(frozen=True)
class Goal:
    """Objectives and hard limits of a study, checked when it is made.

    Attributes:
        objectives: names of :data:`OBJECTIVES`; more than one asks for a Pareto front.
        limits: by figure, its largest value: ``{"gap_p99_ms": 200, "ttft_p99_s.chat": 1.0}``. Gaps and TTFT are those
            of the client, percentiles are over all gaps (or requests) pooled, or over those of the class after the dot.
        slo: what goodput is held against; it is a figure of each request, where a limit is one of the whole run.

    Raises:
        InputError: an objective or a limit is not known, or two limits clash.
    """

    objectives: tuple[str, ...] = ("goodput",)
    limits: Mapping[str, float] = field(default_factory=dict)
    slo: SLO = field(default_factory=SLO)

    def __post_init__(self) -> None:
        if not self.objectives or len(set(self.objectives)) < len(self.objectives):
            raise InputError("objective", ", ".join(self.objectives) or "none", "names that differ", "name one or more")
        for name in self.objectives:
            if name not in OBJECTIVES:
                raise InputError("objective", name, f"one of {', '.join(OBJECTIVES)}", "choose from these")
        _check_clashes(self.parsed)

    @property
    def parsed(self) -> tuple[Limit, ...]:
        """The limits, taken apart.

        Raises:
            InputError: one of them is wrong.
        """
        return tuple(Limit.of_text(name, value) for name, value in self.limits.items())

    @property
    def aims(self) -> tuple[Objective, ...]:
        """The objectives with their figures and directions."""
        return tuple(OBJECTIVES[name] for name in self.objectives)

    @property
    def words(self) -> str:
        """In a sentence, for tables and charts."""
        aims = phrases(
            " and ",
            [
                phrase("most {figure}", figure=phrase(one.words))
                if one.direction == "maximize"
                else phrase("least {figure}", figure=phrase(one.words))
                for one in self.aims
            ],
        )
        limits = ", ".join(f"{name} ≤ {value:g}" for name, value in self.limits.items())
        return aims + phrase(" with {limits}", limits=limits) if limits else aims

    def check(self, scenario: Scenario, max_model_len: int | None = None) -> Goal:
        """Return the goal if this scenario's load can be judged by it; no engine is needed.

        Args:
            scenario: whose load with its own seed is looked at.
            max_model_len: of the engine; by default what the scenario asks for.

        Raises:
            InputError: there is no request, a limit is of a class that the scenario does not have, or nothing has what
                an objective or a limit is about: a long prompt, or a second output token, before which is a gap.
            ScenarioError: a request is longer than the context.
        """
        length = max_model_len or scenario.engine_config.max_model_len
        planned = [
            (stream.class_name, request)
            for place, stream in enumerate(scenario.streams)
            for request in plan(stream, place, scenario.seed, length)[0]
        ]
        if not planned:
            fix = "raise a rate, a count or a duration, or take another seed"
            raise InputError(f"scenario {scenario.name}", f"no request with seed {scenario.seed}", "one or more", fix)
        classes = sorted({stream.class_name for stream in scenario.streams})
        for limit in self.parsed:
            if limit.of is not None and limit.of not in classes:
                fix = f"the scenario {scenario.name} has no other"
                raise InputError(f"limit {limit.name}", limit.of, f"a class of {', '.join(classes)}", fix)
        of_gaps = [(f"limit {one.name}", one.of) for one in self.parsed if one.kind == "gap"]
        of_gaps += [(f"objective {one.name}", None) for one in self.aims if one.figure.startswith("gap_")]
        for what, of in of_gaps:
            if not any(request.output_tokens > 1 for name, request in planned if of in (None, name)):
                expected = "requests of 2 or more, since there is a gap between two"
                raise InputError(
                    what, "requests of 1 output token", expected, "lengthen output_tokens, or leave it out"
                )
        if "long_ttft" in self.objectives:
            longest = max(request.prompt_tokens for _, request in planned)
            if longest < LONG_PROMPT:
                expected = f"a prompt of {LONG_PROMPT:,} tokens or more, which counts as long"
                raise InputError("objective long_ttft", f"a longest prompt of {longest}", expected, "use ttft_p99")
        return self

    def judge(self, trace: Trace) -> tuple[dict[str, float], tuple[float, ...], dict[str, float]]:
        """What a run says about the goal.

        Returns:
            Figures: ``goodput_per_s``, ``requests_per_s``, ``output_tokens_per_s``, ``prompt_tokens_per_s``,
            ``tokens_per_s`` (both), ``long_ttft_s`` (the longest TTFT of prompts of 1,000 tokens or more, as in
            reports), ``gap_p50_ms`` ... ``gap_max_ms``, ``ttft_p50_s`` ... ``ttft_max_s``, those again with ``.CLASS``
            for each class, ``duration_s``, ``failed`` (share of requests that did not end well), and ``slack`` (mean
            over requests of 1 - the larger of TTFT and worst gap over its promise, between -1 and 1: it tells apart
            what has the same goodput). Rates are over the time from the first send to the last event, as in
            :func:`workbench.metrics.summary`. What was not measured is left out.

            Objectives: in the goal's order; 0 for a rate, and infinity for a time, that was not measured.

            Excess: by constraint, measured / limit - 1. The share of requests that did not end well is a constraint of
            every goal (it must be 0), since what never arrived has no gap to be too long.
        """
        figures = figures_of(trace, self.slo)
        objectives = tuple(figures.get(aim.figure, _nothing(aim)) for aim in self.aims)
        excess = {limit.name: figures.get(limit.name, 0.0) / limit.value - 1 for limit in self.parsed}
        excess[FAILED] = figures["failed"]
        return figures, objectives, {name: min(over, FAR) for name, over in excess.items()}

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"objectives": list(self.objectives), "limits": dict(self.limits), "slo": self.slo.model_dump()}

    @classmethod
    def of_dict(cls, facts: Mapping[str, Any]) -> Self:
        """Take it from what :meth:`as_dict` gave."""
        return cls(tuple(facts["objectives"]), dict(facts["limits"]), parse(SLO, facts["slo"]))


def _nothing(aim: Objective) -> float:
    return 0.0 if aim.direction == "maximize" else math.inf


def _check_clashes(limits: tuple[Limit, ...]) -> None:
    """A limit that another one makes impossible to reach is a slip: the person meant something else."""
    for one in limits:
        for other in limits:
            wider = other.of == one.of or (other.of is None and other.part == "max")  # which is that of all classes
            lower = _PARTS.index(one.part) < _PARTS.index(other.part) or (one.part == other.part and one.of != other.of)
            if one.kind == other.kind and wider and lower and one.value > other.value:
                raise InputError(
                    f"limits {one.name} and {other.name}",
                    f"{one.value:g} and {other.value:g}",
                    f"{one.name} no larger than {other.name}, which can never be the smaller figure",
                    f"leave {one.name} out or lower it",
                )
