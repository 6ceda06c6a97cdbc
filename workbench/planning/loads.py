"""A scenario's traffic as requests at any rate: the same lengths in the same order, closer together or apart."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil

import numpy as np

from workbench.config import parse
from workbench.errors import InputError, ScenarioError
from workbench.i18n import phrase, phrases
from workbench.simulate.job import Ask
from workbench.workload.arrivals import Rated, Trace
from workbench.workload.scenario import MAX_SEED, Scenario
from workbench.workload.stream import Planned, Stream, plan

_IDS = 999  # the simulator's made-up vocabulary
_PIECES = 256  # shared pieces of prompts that are remembered


@dataclass(frozen=True)
class Load:
    """Requests in order of arrival, at one request a second on average.

    Attributes:
        name: of the scenario.
        classes: of each stream, its class and priority.
        requests: planned at one request a second.
        concerns: what of the scenario is played otherwise than it says, and what of it nobody knows before there are
            prompts, in words; empty is nothing.
        whole: a recorded trace, whose pieces have other rates than all of it.
    """

    name: str
    classes: tuple[tuple[str, int], ...]
    requests: tuple[Planned, ...]
    concerns: str = ""
    whole: bool = False

    @classmethod
    def of(
        cls,
        scenario: Scenario,
        count: int,
        max_model_len: int,
        seed: int | None = None,
        *,
        prefix_cache: bool = False,
    ) -> Load:
        """Take so many requests of a scenario; its streams keep their shares and run side by side from the start.

        Args:
            scenario: all its streams must have a rate, or it is one recorded trace.
            count: requests; a trace gives as many as it has.
            max_model_len: the engine's context.
            seed: replaces the scenario's.
            prefix_cache: whether the engine has one; only ``concerns`` depends on it.

        Raises:
            ScenarioError: it has no rate to change, or a request is longer than the context.
            TraceFileError: the trace file cannot be used.
        """
        seed = scenario.seed if seed is None else seed
        if not 0 <= seed <= MAX_SEED:
            raise ScenarioError("seed", seed, f"a number from 0 to {MAX_SEED}", "choose another seed")
        whole = len(scenario.streams) == 1 and isinstance(scenario.streams[0].arrivals, Trace)
        if whole:
            planned, what = _recorded(scenario.streams[0], count, seed, max_model_len)
        else:
            planned, what = _drawn(scenario, count, seed, max_model_len), ""
        together = phrase("all streams begin together") if any(stream.start_s for stream in scenario.streams) else ""
        return cls(
            scenario.name,
            tuple((stream.class_name, stream.priority) for stream in scenario.streams),
            tuple(planned),
            phrases("; ", filter(None, (what, together, _prefixes(planned, prefix_cache)))),
            whole,
        )

    @cached_property
    def prompt_tokens(self) -> float:
        """Mean length of a prompt."""
        return float(np.mean([one.prompt_tokens for one in self.requests]))

    @cached_property
    def output_tokens(self) -> float:
        """Mean length of an output."""
        return float(np.mean([one.output_tokens for one in self.requests]))

    @cached_property
    def longest(self) -> int:
        """The longest prompt, tokens."""
        return max(one.prompt_tokens for one in self.requests)

    def asks(self, rate: float, count: int, *, tokens: bool = False) -> list[Ask]:
        """The first ``count`` requests at a rate, 1/s.

        Args:
            rate: requests a second on average; times shrink by it, so that two rates differ in nothing else.
            count: how many.
            tokens: with the ids of the prompts' tokens, which only a prefix cache looks at.

        Raises:
            InputError: the rate is not above zero.
        """
        if not rate > 0:
            raise InputError("rate", rate, "requests a second, above 0", "choose a rate")
        made = []
        for i, one in enumerate(self.requests[:count]):
            name, priority = self.classes[one.stream]
            parts = enumerate(one.parts) if tokens else ()
            ids = b"".join(_ids(("own", i, place) if key is None else key, n) for place, (key, n) in parts)
            made.append(
                Ask(f"{name}-{i}", name, priority, one.arrival_s / rate, one.prompt_tokens, one.output_tokens, ids)
            )
        return made


def _drawn(scenario: Scenario, count: int, seed: int, max_model_len: int) -> list[Planned]:
    whole = sum(stream.arrivals.rate for stream in scenario.streams if isinstance(stream.arrivals, Rated))
    planned: list[Planned] = []
    for place, stream in enumerate(scenario.streams):
        arrivals = stream.arrivals
        if not isinstance(arrivals, Rated):
            raise ScenarioError(
                f"{scenario.name}: streams.{place} (class {stream.class_name})",
                f"arrivals of kind {arrivals.kind}",
                "arrivals with a rate (constant, poisson, gamma), as a capacity is the most requests a second",
                "give the stream a rate, or choose another scenario such as azure-like",
            )
        mine = ceil(count * arrivals.rate / whole) + 1  # one more, since their last arrivals differ
        fields = arrivals.model_dump() | {"count": mine, "duration_s": None}
        arrivals = parse(type(arrivals), fields, error=ScenarioError)
        requests, _ = plan(stream.model_copy(update={"arrivals": arrivals, "start_s": 0.0}), place, seed, max_model_len)
        planned += [_at(one, one.arrival_s * whole) for one in requests]
    planned.sort(key=lambda one: one.arrival_s)
    return planned[:count]


def _recorded(stream: Stream, count: int, seed: int, max_model_len: int) -> tuple[list[Planned], str]:
    """Recorded arrivals, with their bursts; stretched so that the average is one a second."""
    every, _ = plan(stream.model_copy(update={"start_s": 0.0}), 0, seed, max_model_len)
    requests = every[:count]
    span = requests[-1].arrival_s - requests[0].arrival_s if len(requests) > 1 else 0.0
    if not span > 0:
        raise ScenarioError(
            "trace", f"{len(requests)} requests in {span:g} s", "two or more at different times", "take more of it"
        )
    factor, begin = (len(requests) - 1) / span, requests[0].arrival_s
    much = (
        phrase("a recorded trace")
        if len(requests) == len(every)
        else phrase("the first {count:,} of {every:,} requests", count=count, every=len(every))
    )
    planned = [_at(one, (one.arrival_s - begin) * factor) for one in requests]
    return planned, phrase("{much} at another speed: bursts stay, closer together at a higher rate", much=much)


def _prefixes(planned: list[Planned], prefix_cache: bool) -> str:
    """What is known of prefix hits before there are prompts."""
    keys = Counter(key for one in planned for key, _ in one.parts if key is not None)
    shared = any(times > 1 for times in keys.values())
    if not prefix_cache:
        off = phrase(
            "prompts share prefixes, but the prefix cache is off (enable_prefix_caching=true): nothing is saved"
        )
        return off if shared else ""
    if not shared:
        return phrase("the prefix cache is on, but nothing says which prompts share a prefix: no hits are counted")
    return phrase("prefix hits are those of made-up prompts that share what the scenario says: yours are not known yet")


def _at(one: Planned, at_s: float) -> Planned:
    return Planned(one.stream, at_s, one.parts, one.output_tokens)


@lru_cache(maxsize=_PIECES)
def _ids(key: Hashable, n: int) -> bytes:
    """Made-up tokens that are equal for equal keys; not from Python's hash, which differs between processes."""
    rng = np.random.default_rng(zlib.crc32(repr(key).encode()))
    return rng.integers(1, _IDS, n).astype("<i4").tobytes()
