"""What a step holds, as its time depends on it, and what a step-time model is. No vllm: used in kernel and child."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

KINDS = ("decode", "mixed", "prefill")  # steps that only decode, do both, only prefill; the words of metrics.mfu


class PartLike(Protocol):
    """One request in one step: :class:`workbench.engine.probe.wire.Part`, or anything with its fields."""

    @property
    def tokens(self) -> int:
        """Tokens computed."""

    @property
    def context(self) -> int:
        """Tokens with KV before the step."""

    @property
    def prefill(self) -> bool:
        """Whether it is prefill (recompute after a preemption is)."""


class Chunk(NamedTuple):
    """Prompt tokens of one request in one step.

    Attributes:
        tokens: tokens computed.
        context: tokens of it with KV before.
    """

    tokens: int
    context: int

    @property
    def pairs(self) -> int:
        """Pairs of a query and a key that causal attention multiplies: t x context + t (t + 1) / 2."""
        return self.tokens * self.context + self.tokens * (self.tokens + 1) // 2


class StepShape(NamedTuple):
    """What a step computes. Prompts are kept apart, as a kernel's time depends on each; decodes are summed.

    Attributes:
        prefill_tokens: prompt tokens.
        prefill_pairs: tokens that they attend to, counted for each prompt token, itself included.
        decodes: tokens of requests that decode.
        decode_context: tokens with KV that those attend to, themselves not included.
        prefills: requests that prefill.
        chunks: the prompts' parts, one for each request that prefills.
    """

    prefill_tokens: int
    prefill_pairs: int
    decodes: int
    decode_context: int
    prefills: int
    chunks: tuple[Chunk, ...] = ()

    @classmethod
    def of(cls, parts: Iterable[PartLike]) -> StepShape:
        """The shape of a step from its parts, planned or done."""
        # Comprehensions rather than one loop: this runs once a step over a hundred requests.
        held = list(parts)
        chunks = tuple([Chunk(part.tokens, part.context) for part in held if part.prefill])
        tokens, before = sum([one[0] for one in chunks]), sum([one[1] for one in chunks])
        decodes = sum([part.tokens for part in held]) - tokens
        if decodes == len(held) - len(chunks):  # one token each
            context = sum([part.context for part in held]) - before
        else:
            context = sum([part.tokens * part.context for part in held if not part.prefill])
        return cls(tokens, sum([one.pairs for one in chunks]), decodes, context, len(chunks), chunks)

    @classmethod
    def made(cls, chunks: Iterable[tuple[int, int]] = (), decodes: int = 0, context: int = 0) -> StepShape:
        """A shape by hand: chunks as (tokens, context), and decodes that each look at ``context`` tokens."""
        kept = tuple(Chunk(*chunk) for chunk in chunks)
        tokens, pairs = sum(one.tokens for one in kept), sum(one.pairs for one in kept)
        return cls(tokens, pairs, decodes, decodes * context, len(kept), kept)

    @property
    def tokens(self) -> int:
        """All tokens that go through the layers."""
        return self.prefill_tokens + self.decodes

    @property
    def requests(self) -> int:
        """Requests in the step; vLLM computes logits for the last token of each, sampled or not."""
        return self.prefills + self.decodes

    @property
    def kind(self) -> str:
        """One of :data:`KINDS`."""
        if not self.prefill_tokens:
            return "decode"
        return "mixed" if self.decodes else "prefill"


class Band(NamedTuple):
    """A time and how far it may be off, in seconds.

    Attributes:
        low: the most optimistic of the models or efficiencies that were asked.
        seconds: the model's own answer.
        high: the most pessimistic.
    """

    low: float
    seconds: float
    high: float


@runtime_checkable
class StepTime(Protocol):
    """How long a step takes. Asked once a step: at most some 20 µs, and with no state that changes the answer."""

    @property
    def name(self) -> str:
        """Short, as it stands on charts: "calibrated", "roofline", "tables"."""

    @property
    def calibrated(self) -> bool:
        """Whether it was fitted to steps of this model measured on this hardware; if not, it is "uncalibrated"."""

    def seconds(self, step: StepShape) -> float:
        """From the start of the step on the device until its output is there."""

    def interval(self, step: StepShape) -> float:
        """Until the device can begin the next step: less than that only where a pipeline has several stages."""

    def outside(self, step: StepShape) -> str:
        """What of the step lies beyond all that the model was fitted to, in words; empty where nothing does."""

    def band(self, step: StepShape) -> Band:
        """The time, with how far it may be off."""

    def describe(self) -> Mapping[str, Any]:
        """Plain data for a run's metadata: ``name``, ``calibrated``, ``label``, what it rests on and its errors."""

    def spec(self) -> dict[str, Any]:
        """Plain data from which :func:`workbench.simulate.steptime.from_spec` makes it again, in another process."""
