"""A setting: hot knobs under one name, as scenarios list them, sweeps combine them and the command line takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import Field, field_validator

from workbench.config import Envelope, Frozen, Knobs, PolicyName, parse
from workbench.errors import EnvelopeError
from workbench.knobs import NUMBERS, no_truth


class Setting(Frozen):
    """Hot knobs to play a scenario under; what is left out is as the engine starts."""

    name: str = Field(min_length=1, max_length=200, description="Name in tables and charts.")
    budget: int | None = Field(None, description="Most tokens in one step.", json_schema_extra={"unit": "tokens"})
    chunk: int | None = Field(
        None, description="Most prefill tokens of one request in one step.", json_schema_extra={"unit": "tokens"}
    )
    max_running: int | None = Field(None, description="Most requests running at once.")
    policy: PolicyName | None = Field(None, description="Scheduling policy.")
    prefill_every: int | None = Field(None, description="decode_first only: let prefill in on every N-th step.")
    target_gap_ms: float | None = Field(None, description="target_gap only: longest predicted step.")
    aging_s: float | None = Field(None, description="qos only: wait after which an offline request counts as normal.")
    watermark: float | None = Field(None, description="Share of KV blocks kept free when a request is let in.")
    reserve_full: bool | None = Field(None, description="Let a request in only when its whole prompt fits.")
    prefix_cache: bool | None = Field(None, description="New requests look up the prefix cache.")

    _numbers = field_validator(*NUMBERS, mode="before")(no_truth)

    @classmethod
    def of(cls, knobs: Mapping[str, Any]) -> Self:
        """A setting that is called by its knobs, such as "budget 256 chunk 128" or "policy qos reserve_full off".

        Raises:
            EnvelopeError: a name or a value is wrong.
        """
        unnamed = parse(cls, {"name": "unnamed", **knobs}, error=EnvelopeError)
        name = " ".join(f"{knob} {_word(getattr(unnamed, knob))}" for knob in knobs)
        return unnamed.model_copy(update={"name": name})

    @property
    def given(self) -> dict[str, Any]:
        """The knobs that it names."""
        return self.model_dump(exclude_none=True, exclude={"name"})

    def knobs(self, envelope: Envelope) -> Knobs:
        """The full set of knobs.

        Raises:
            EnvelopeError: a knob does not fit the engine.
        """
        return envelope.check(parse(Knobs, envelope.defaults.model_dump() | self.given, error=EnvelopeError))


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:.12g}" if isinstance(value, float) else str(value)
