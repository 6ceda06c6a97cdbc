"""What there is to judge claims by: the runs of one source, what vLLM said of two command lines, and simulations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from workbench.claims.long_prompt import LongPrompt
from workbench.claims.oom_rate import Chunking
from workbench.claims.verdict import Measured, origin_of
from workbench.errors import InputError
from workbench.simulate.banded import Banded

Source = Literal["live", "recorded", "simulated"]


@dataclass(frozen=True)
class Asked:
    """What vLLM resolves two command lines to; see :func:`workbench.claims.resolved.resolve`.

    Attributes:
        without_flags: of ``vllm serve MODEL`` alone.
        article: of the article's command, with a small model in the place of its own.
        engine: ``describe()`` of a running engine; empty where none runs.
        vllm: which vLLM was asked.
    """

    without_flags: Mapping[str, Any]
    article: Mapping[str, Any]
    engine: Mapping[str, Any]
    vllm: str


@dataclass
class Evidence:
    """What one source gave; it grows while runs are played.

    Attributes:
        source: live, recorded or simulated.
        runs: measured or simulated, in the order in which they were played.
        asked: what vLLM said of the command lines; none where there is no vLLM, or it was not asked yet.
        article: the article's policies on its own GPUs, simulated.
        engines: engines with and without chunks, simulated.
    """

    source: Source
    runs: list[Measured] = field(default_factory=list)
    asked: Asked | None = None
    article: Mapping[str, Banded] = field(default_factory=dict)
    engines: Sequence[Chunking] = ()

    @cached_property
    def prompts(self) -> list[tuple[Measured, LongPrompt]]:
        """Runs that have a long prompt which was computed once, under one setting; read once all runs are there."""
        found = []
        for run in self.runs:
            try:
                found.append((run, LongPrompt.of(run)))
            except InputError:
                continue
        return found

    def beside(self, run: Measured) -> list[tuple[Measured, LongPrompt]]:
        """The long prompts of the same load on the same engine, ``run`` itself among them."""
        return [(one, long) for one, long in self.prompts if load_of(one) == load_of(run)]


def load_of(run: Measured) -> tuple[Any, ...]:
    """What two runs must share to be compared: where they are from, the scenario and its seed."""
    meta = run.trace.meta
    return origin_of([run]), meta.get("scenario"), meta.get("seed")
