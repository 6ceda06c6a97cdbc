"""The search space: a grid of hot knobs, some of which count under one policy only, and of start-up fields.

Every dimension is a list of values in an order (budgets by size, chunk caps by size and off last), and a sampler moves
along the places of that list: a chunk cap of "off" is next to the largest one, where its number, 0, is not.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from workbench.config import POLICIES, EngineConfig, Envelope, parse
from workbench.errors import EnvelopeError, InputError
from workbench.simulated_config import engine_config
from workbench.tune.choices import choices, in_order
from workbench.tune.goal import Goal
from workbench.tune.trial import Point
from workbench.workload.scenario import Scenario
from workbench.workload.setting import Setting

# Start-up fields that a study may try; each value takes an engine start of its own.
RESTART = (
    *("max_num_seqs", "block_size", "gpu_memory_utilization", "tensor_parallel_size", "pipeline_parallel_size"),
    *("kv_cache_mib", "max_num_batched_tokens", "enable_prefix_caching"),
)
# Knobs that count under these policies only; where no policy is named, the others play no part.
_OF_POLICY = {
    "target_gap_ms": ("target_gap",),
    "prefill_every": ("decode_first",),
    "aging_s": ("qos",),
    # target_gap cuts prefill to what fits by itself, and below its budget is chunked with extra steps.
    "budget": tuple(name for name in POLICIES if name not in ("monolithic", "target_gap")),
    "chunk": tuple(name for name in POLICIES if name not in ("monolithic", "target_gap")),
}
_MOST_POINTS = 100_000


@dataclass(frozen=True)
class Space:
    """Values of each dimension; a point takes one of each that counts.

    Attributes:
        hot: knob (a field of :class:`workbench.workload.setting.Setting`) to its values, in order.
        start_up: start-up field to its values; none asks for no restart.
        config: the study's own start-up fields: points must fit what they allow.
        longest: longest prompt of the load, tokens: a chunk cap at or above it is the same as none.
    """

    hot: Mapping[str, tuple[Any, ...]]
    config: EngineConfig
    start_up: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    longest: int | None = None

    def __post_init__(self) -> None:
        for name, values in {**self.hot, **self.start_up}.items():
            if not values:
                raise InputError(name, "no value", "one or more", "give some, or leave it out")
        for name in self.start_up:
            if name not in RESTART:
                raise InputError("--restart", name, f"one of {', '.join(RESTART)}", "choose one of these")
            for value in self.start_up[name]:
                parse(type(self.config), self._fields({name: value}))
        combinations = math.prod(len(values) for values in (*self.hot.values(), *self.start_up.values()))
        if combinations > _MOST_POINTS:
            expected = f"at most {_MOST_POINTS:,} combinations of values"
            raise InputError("space", f"{combinations:,}", expected, "give fewer values of some knob")
        self._can_be()
        try:
            next(self.points())
        except StopIteration:
            self._explain()

    @classmethod
    def of(
        cls,
        scenario: Scenario,
        config: EngineConfig,
        goal: Goal,
        *,
        given: Mapping[str, Sequence[Any]] | None = None,
        restart: Mapping[str, Sequence[Any]] | None = None,
    ) -> Self:
        """The space of a study: what was given, and for budget, chunk, running cap and policy what makes sense else.

        Args:
            scenario: classes of it decide whether policies with classes are tried.
            config: start-up fields.
            goal: its tightest gap is what ``target_gap`` is given.
            given: values by knob, in place of those chosen here.
            restart: values by start-up field.

        Raises:
            InputError: nothing fits the engine, or a name or a value is wrong.
        """
        chosen = {**choices(scenario, config, goal), **in_order(given or {})}
        fields = {name: tuple(dict.fromkeys(values)) for name, values in (restart or {}).items()}
        return cls(chosen, config, fields)

    @property
    def restarts(self) -> dict[str, tuple[Any, ...]]:
        """Values of each start-up field that is tried, the study's own first."""
        return {
            name: (getattr(self.config, name), *(one for one in values if one != getattr(self.config, name)))
            for name, values in self.start_up.items()
        }

    def starts(self) -> list[dict[str, Any]]:
        """Combinations of start-up fields that differ from the study's own configuration; each is an engine start."""
        names = list(self.start_up)
        found = []
        for values in itertools.product(*self.start_up.values()):
            fields = {
                name: value for name, value in zip(names, values, strict=True) if getattr(self.config, name) != value
            }
            if fields and fields not in found:
                found.append(fields)
        return found

    def conditions(self, name: str) -> tuple[str, ...] | None:
        """The policies under which a knob counts; None is all."""
        return _OF_POLICY.get(name)

    def counts(self, name: str, policy: str | None) -> bool:
        """Whether a knob counts under a policy; None is the policy that engines start with."""
        policies = self.conditions(name)
        return policies is None or (policy or "chunked") in policies

    def points(self, start_up: Mapping[str, Any] | None = None) -> Iterator[Point]:
        """All points that fit, each once.

        Args:
            start_up: fields that differ from the study's own; by default none.
        """
        seen = set()
        for policy in self.hot.get("policy", (None,)):
            counted = {name: values for name, values in self.hot.items() if self.counts(name, policy)}
            counted |= {"policy": (policy,)} if policy is not None else {}
            for values in itertools.product(*counted.values()):
                point = self.point(dict(zip(counted, values, strict=True)), start_up or {})
                if point is not None and point.key not in seen:
                    seen.add(point.key)
                    yield point

    def point(self, values: Mapping[str, Any], start_up: Mapping[str, Any]) -> Point | None:
        """A choice of values as the engine would take it; None where it cannot.

        What does not count under the policy is left out, a chunk cap that cuts nothing is off, and a running cap above
        the budget is lowered to it, since each running request takes a token. A budget or running cap that is the
        ceiling of the study's own engine is that of another engine there, and none is above it.
        """
        policy = values.get("policy")
        hot = {name: value for name, value in values.items() if self.counts(name, policy)}
        try:
            config = self.config_of(start_up)
            defaults = config.envelope.defaults
            for name, own, ceiling in (
                ("budget", self.config.max_num_batched_tokens, defaults.budget),
                ("max_running", self.config.max_num_seqs, defaults.max_running),
            ):
                if start_up and name in hot:
                    hot[name] = ceiling if hot[name] == own else min(hot[name], ceiling)
            budget = hot.get("budget") or defaults.budget
            cuts = budget if self.longest is None else min(budget, self.longest)
            if hot.get("chunk", 0) >= cuts:
                hot["chunk"] = 0
            if budget < (hot.get("max_running") or defaults.max_running):
                hot["max_running"] = budget
            Setting.of(hot).knobs(config.envelope)
        except InputError:
            return None
        return Point(hot, dict(start_up))

    def config_of(self, start_up: Mapping[str, Any]) -> EngineConfig:
        """The configuration of an engine with these start-up fields.

        Raises:
            ConfigError: they do not fit together.
        """
        return parse(type(self.config), self._fields(start_up)) if start_up else self.config

    def as_dict(self) -> dict[str, Any]:
        """Plain data, the same for equal spaces."""
        return {
            "hot": {name: list(values) for name, values in self.hot.items()},
            "start_up": {name: list(values) for name, values in self.start_up.items()},
            "config": self.config.model_dump(mode="json", exclude={"port"}),
            "longest": self.longest,
        }

    @classmethod
    def of_dict(cls, facts: Mapping[str, Any]) -> Self:
        """Take it from what :meth:`as_dict` gave.

        Raises:
            InputError: it does not fit together in this version of the workbench.
        """
        hot, start_up = ({name: tuple(some) for name, some in facts[part].items()} for part in ("hot", "start_up"))
        return cls(hot, engine_config(facts["config"]), start_up, facts["longest"])

    def _fields(self, start_up: Mapping[str, Any]) -> dict[str, Any]:
        fields = self.config.model_dump() | dict(start_up)
        fields.pop("engine", None)
        if "count" in fields and {"tensor_parallel_size", "pipeline_parallel_size"} & set(start_up):
            fields["count"] = None  # as many GPUs as they ask for
        return fields

    def _can_be(self) -> None:
        """A value that no engine of the study can have is a slip, even where other values fit."""
        envelopes = [self.config_of(fields).envelope for fields in ({}, *self.starts())]
        for name, values in self.hot.items():
            for value in values:
                refused = [error for one in envelopes if (error := _refused(name, value, one)) is not None]
                if len(refused) == len(envelopes):
                    raise refused[0]

    def _explain(self) -> None:
        """Say why nothing fits, in the words of the envelope."""
        first = {name: values[0] for name, values in self.hot.items()}
        hot = {name: value for name, value in first.items() if self.counts(name, first.get("policy"))}
        Setting.of(hot).knobs(self.config.envelope)
        raise EnvelopeError("space", "no point that fits", "one or more", "give other values")


def _refused(name: str, value: Any, envelope: Envelope) -> EnvelopeError | None:
    """Why an engine cannot have one value of a knob, whatever the others are."""
    knobs = {name: value}
    if name == "budget" and isinstance(value, int) and value > 0:
        knobs["max_running"] = min(value, envelope.max_running)  # as a point has it
    try:
        Setting.of(knobs).knobs(envelope)
    except EnvelopeError as error:
        return error
    return None
