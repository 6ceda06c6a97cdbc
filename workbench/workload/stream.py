"""One stream of a scenario: requests of one class, and the plan of each before its prompt is made."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from workbench.config import Frozen
from workbench.errors import ScenarioError, TraceFileError
from workbench.workload import paths
from workbench.workload.arrivals import Arrivals, Trace
from workbench.workload.lengths import MAX_TOKENS, Length
from workbench.workload.priority import NORMAL, Priority
from workbench.workload.readers import TraceRequests
from workbench.workload.trace_rows import BLOCK_TOKENS

_LENGTHS_STREAM = 2  # keeps the random numbers of arrivals and lengths apart from those of prompts


class SharedPrefix(Frozen):
    """A start that several prompts of a stream have in common, such as a system prompt."""

    tokens: int = Field(
        ge=1,
        le=MAX_TOKENS,
        description="Length of the shared start; it comes before prompt_tokens and adds to them.",
        json_schema_extra={"unit": "tokens"},
    )
    groups: int = Field(1, ge=1, description="Number of different starts; the requests take them in turn.")


class Stream(Frozen):
    """Requests of one class with one arrival process."""

    class_name: str = Field(
        alias="class",
        pattern="^[A-Za-z][A-Za-z0-9_-]*$",
        max_length=40,
        description="Class of traffic, such as chat or long; tables and charts group by it.",
    )
    priority: Priority = Field(
        NORMAL, description="The API's own priority; lower is more urgent: 0 (vip), 1 (normal), 2 (offline) or larger."
    )
    start_s: float = Field(
        0.0, ge=0, le=604_800, description="When the stream starts.", json_schema_extra={"unit": "s"}
    )
    arrivals: Arrivals = Field(description="When requests arrive.")
    prompt_tokens: Length | None = Field(None, description="Prompt lengths, without the shared prefix.")
    output_tokens: Length | None = Field(None, description="Output lengths.")
    shared_prefix: SharedPrefix | None = Field(None, description="A start that prompts have in common.")
    documents: Path | None = Field(
        None,
        description="A text file, or a folder of them, that prompts are cut from; a relative path starts at the "
        "scenario's folder. It must hold as many tokens as the longest piece of a prompt; the text is a ring.",
    )

    @model_validator(mode="after")
    def _lengths_once(self) -> Self:
        given = {name: getattr(self, name) for name in ("prompt_tokens", "output_tokens", "shared_prefix")}
        if isinstance(self.arrivals, Trace):
            for name, value in given.items():
                if value is not None:
                    raise ValueError(f"no {name}, since lengths and prefixes come from the trace file")
        elif missing := [name for name in ("prompt_tokens", "output_tokens") if given[name] is None]:
            raise ValueError(f"{' and '.join(missing)}, or arrivals of kind trace")
        return self

    def located(self, folder: Path) -> Stream:
        """The same stream with its paths absolute, relative ones taken from ``folder``."""
        changes: dict[str, object] = {}
        if self.documents is not None:
            changes["documents"] = paths.located(self.documents, folder)
        if isinstance(self.arrivals, Trace):
            changes["arrivals"] = self.arrivals.model_copy(update={"path": paths.located(self.arrivals.path, folder)})
        return self.model_copy(update=changes)


@dataclass(frozen=True, slots=True)
class Planned:
    """A request whose prompt is not made yet.

    Attributes:
        stream: position of its stream in the scenario.
        arrival_s: seconds from the run's zero.
        parts: pieces of the prompt, each with its key (equal keys are equal text) and its number of tokens.
        output_tokens: length of the output.
    """

    stream: int
    arrival_s: float
    parts: tuple[tuple[Hashable, int], ...]
    output_tokens: int

    @property
    def prompt_tokens(self) -> int:
        """Length of the prompt."""
        return sum(n for _, n in self.parts)


def plan(stream: Stream, place: int, seed: int, max_model_len: int) -> tuple[list[Planned], dict[str, int]]:
    """Draw arrivals and lengths of one stream.

    Args:
        stream: the stream.
        place: its position in the scenario.
        seed: the workload's seed.
        max_model_len: the model's context; it bounds prompt and output together.

    Returns:
        The requests in order of arrival, and for a trace file what was done about its rows.

    Raises:
        ScenarioError: the stream can make a request that is longer than the context.
        TraceFileError: the trace file cannot be used.
    """
    if isinstance(stream.arrivals, Trace):
        return _plan_trace(stream, stream.arrivals, place, max_model_len)
    if stream.prompt_tokens is None or stream.output_tokens is None:
        raise AssertionError("the stream was checked when it was built")
    shared = stream.shared_prefix
    prefix = shared.tokens if shared else 0
    prompt, output = stream.prompt_tokens.longest, stream.output_tokens.longest
    if prefix + prompt + output > max_model_len:
        lengths = f"{prefix} shared + " if prefix else ""
        raise ScenarioError(
            f"streams.{place} (class {stream.class_name})",
            f"up to {lengths}{prompt} prompt + {output} output = {prefix + prompt + output} tokens",
            f"at most {max_model_len} (max_model_len)",
            "shorten prompt_tokens or output_tokens, or raise max_model_len",
        )
    times, prompts, outputs = (np.random.default_rng([_LENGTHS_STREAM, seed, place, use]) for use in range(3))
    arrivals = stream.start_s + stream.arrivals.times(times)
    n = len(arrivals)
    rows = zip(
        arrivals.tolist(),
        stream.prompt_tokens.sample(prompts, n).tolist(),
        stream.output_tokens.sample(outputs, n).tolist(),
        strict=True,
    )
    planned = []
    for i, (arrival, prompt_tokens, output_tokens) in enumerate(rows):
        parts: tuple[tuple[Hashable, int], ...] = ((None, prompt_tokens),)
        if shared:
            parts = ((("prefix", place, i % shared.groups), shared.tokens), *parts)
        planned.append(Planned(place, arrival, parts, output_tokens))
    return planned, {}


def _plan_trace(
    stream: Stream, arrivals: Trace, place: int, max_model_len: int
) -> tuple[list[Planned], dict[str, int]]:
    found = arrivals.read()
    counts = found.counts | {"clipped": 0, "dropped": 0}
    planned = []
    for i, arrival in enumerate(found.times.tolist()):
        request = Planned(place, stream.start_s + arrival, _parts(found, i, place), int(found.output_tokens[i]))
        if request.prompt_tokens + request.output_tokens > max_model_len:
            if arrivals.too_long == "drop":
                counts["dropped"] += 1
                continue
            counts["clipped"] += 1
            request = _clipped(request, max_model_len)
        planned.append(request)
    if not planned:
        raise TraceFileError(
            str(arrivals.path),
            f"{len(found.times)} requests that are all too long",
            f"at least one of at most {max_model_len} tokens (max_model_len)",
            "set too_long to clip, or raise max_model_len",
        )
    return planned, counts


def _parts(found: TraceRequests, i: int, place: int) -> tuple[tuple[Hashable, int], ...]:
    """The prompt of request ``i`` as its blocks; what no block covers is its own."""
    left = int(found.prompt_tokens[i])
    parts: list[tuple[Hashable, int]] = []
    for block in found.blocks[i] or ():
        if not left:
            break
        parts.append((("block", place, block), min(left, BLOCK_TOKENS)))
        left -= parts[-1][1]
    if left:
        parts.append((None, left))
    return tuple(parts)


def _clipped(request: Planned, limit: int) -> Planned:
    """The request cut to ``limit`` tokens: the output to what the prompt leaves or half, then the prompt's end."""
    output = min(request.output_tokens, max(limit - request.prompt_tokens, limit // 2))
    left = limit - output
    parts = []
    for key, n in request.parts:
        if left:
            parts.append((key, min(n, left)))
            left -= parts[-1][1]
    return replace(request, parts=tuple(parts), output_tokens=output)
