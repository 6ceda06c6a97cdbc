"""What a workload is made of: requests, each with an arrival, a class and lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Request:
    """One request that is to be played.

    Attributes:
        request: name, unique in its workload; it is also the name in every table of the trace.
        class_name: class of traffic ("chat", "long", ...), the ``class`` column of the trace.
        priority: value of the API's own ``priority``; lower is more urgent (see :mod:`workbench.workload.priority`).
        arrival_s: planned arrival in seconds from the run's zero; for a stream of fixed concurrency, when it opens.
        prompt: token ids of the prompt.
        output_tokens: output length in tokens; it is enforced (``ignore_eos``).
    """

    request: str
    class_name: str
    priority: int
    arrival_s: float
    prompt: tuple[int, ...]
    output_tokens: int

    @property
    def prompt_tokens(self) -> int:
        """Length of the prompt in tokens."""
        return len(self.prompt)


@dataclass(frozen=True)
class Workload:
    """A seeded list of requests, ready to be played.

    Attributes:
        requests: ordered by arrival.
        concurrency: for classes with fixed concurrency, how many of the class are in flight at once; the next one
            goes out when one ends, and its planned arrival is that moment.
        seed: the seed that made it.
        source: where it came from, for the run's metadata (a scenario as plain data).
    """

    requests: tuple[Request, ...]
    concurrency: Mapping[str, int] = field(default_factory=dict)
    seed: int = 0
    source: Mapping[str, object] = field(default_factory=dict)
