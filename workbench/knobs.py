"""What is turned while the engine runs: the hot knobs, and the envelope that its start fixed for them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator

from workbench.errors import CeilingError, EnvelopeError
from workbench.frozen import Frozen
from workbench.i18n import phrase

PolicyName = Literal["chunked", "monolithic", "decode_first", "priority", "qos", "target_gap"]
POLICIES: tuple[PolicyName, ...] = ("chunked", "monolithic", "decode_first", "priority", "qos", "target_gap")
_LEAST_CONTEXT = 16  # of the start-up max_model_len
NUMBERS = ("budget", "chunk", "max_running", "prefill_every", "target_gap_ms", "aging_s", "watermark")  # knobs


def no_truth(value: Any) -> Any:
    """The value as it is, for a field that holds a number: who writes ``chunk=True`` does not mean one token.

    Raises:
        ValueError: it is true or false, which Python counts as 1 and 0.
    """
    if isinstance(value, bool):
        raise ValueError("a number, neither true nor false")  # noqa: TRY004  pydantic turns it into its own error
    return value


class Knobs(Frozen):
    """Hot knobs: a change acts on the next scheduler step of the running engine."""

    budget: int = Field(
        ge=1,
        description="Token budget: most tokens in one step.",
        json_schema_extra={"unit": "tokens", "label": "budget"},
    )
    chunk: int = Field(
        0,
        ge=0,
        description="Most prefill tokens of one request in one step while other requests are there; 0 is off.",
        json_schema_extra={"unit": "tokens", "label": "chunk"},
    )
    max_running: int = Field(
        ge=1,
        description="Most requests running at once.",
        json_schema_extra={"unit": "requests", "label": "running cap"},
    )
    policy: PolicyName = Field(
        "chunked",
        description="chunked: stock chunked prefill. monolithic: whole prompts only. "
        "decode_first: prefill waits while any decode runs. priority: vLLM's own priority order. "
        "qos: classes 0 VIP, 1 normal, 2 offline; a VIP overtakes and is never preempted. "
        "target_gap: sizes each step's prefill so that the predicted step stays under a target.",
        json_schema_extra={"label": "policy"},
    )
    prefill_every: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="decode_first only: let prefill in on every N-th step; 0 never does while a decode runs.",
        json_schema_extra={"unit": "steps", "label": "prefill every"},
    )
    target_gap_ms: float = Field(
        200.0,
        gt=0,
        description="target_gap only: longest predicted step.",
        json_schema_extra={"unit": "ms", "label": "target gap"},
    )
    aging_s: float = Field(
        30.0,
        ge=0,
        description="qos only: an offline request that has waited this long counts as normal; 0 never does.",
        json_schema_extra={"unit": "s", "label": "aging"},
    )
    watermark: float = Field(
        0.0,
        ge=0,
        le=0.5,
        description="Share of KV blocks kept free when a waiting request is let in, for those that run to grow into.",
        json_schema_extra={"label": "watermark"},
    )
    reserve_full: bool = Field(
        True,
        description="Let a request in only when KV blocks for its whole prompt are free; off lets it in for its first "
        "chunk, and the pool may thrash.",
        json_schema_extra={"label": "reserve whole prompt"},
    )
    prefix_cache: bool = Field(
        True,
        description="New requests look up the prefix cache; needs an engine started with prefix caching.",
        json_schema_extra={"label": "prefix cache"},
    )

    _numbers = field_validator(*NUMBERS, mode="before")(no_truth)


class Envelope(Frozen):
    """Bounds of the hot knobs, fixed when the engine starts."""

    max_budget: int = Field(ge=1, description="Start-up max_num_batched_tokens.")
    max_chunk: int = Field(ge=1, description="Start-up max_model_len.")
    max_running: int = Field(ge=1, description="Start-up max_num_seqs.")
    prefix_caching: bool = Field(
        False, description="Start-up enable_prefix_caching; without it the knob prefix_cache makes no difference."
    )
    policies: tuple[PolicyName, ...] = Field(POLICIES, description="Policies that the engine knows.")

    @property
    def defaults(self) -> Knobs:
        """The knobs that a freshly started engine has: everything at its ceiling, stock chunked prefill."""
        return Knobs(budget=self.max_budget, chunk=0, max_running=self.max_running)

    def check(self, knobs: Knobs) -> Knobs:
        """Return ``knobs`` if they fit.

        Raises:
            CeilingError: a knob is above its bound; the message carries the bound and the start-up field behind it.
            EnvelopeError: two knobs clash.
        """
        rules = (
            ("budget", knobs.budget, self.max_budget, "max_num_batched_tokens"),
            ("chunk", knobs.chunk, self.max_chunk, "max_model_len"),
            ("max_running", knobs.max_running, self.max_running, "max_num_seqs"),
        )
        for name, value, bound, field in rules:
            if value > bound:
                expected = phrase("at most {bound} (the start-up {field})", bound=bound, field=field)
                raise CeilingError(name, value, expected, phrase("choose {bound} or less", bound=bound), field, value)
        if knobs.policy not in self.policies:
            expected = phrase("one of {names}", names=", ".join(self.policies))
            raise EnvelopeError("policy", knobs.policy, expected, phrase("choose one of these"))
        if knobs.budget < knobs.max_running:
            raise EnvelopeError(
                phrase("{one} and {other}", one="budget", other="max_running"),
                f"{knobs.budget} < {knobs.max_running}",
                phrase("a budget of at least one token per running request"),
                phrase("raise budget to {least} or lower max_running", least=knobs.max_running),
            )
        if knobs.policy == "monolithic" and knobs.budget < self.max_chunk:
            raise CeilingError(
                phrase("{one} and {other}", one="policy", other="budget"),
                phrase("monolithic with budget {budget}", budget=knobs.budget),
                phrase(
                    "a budget of at least {least} (max_model_len), since a longer prompt would wait for ever",
                    least=self.max_chunk,
                ),
                phrase("raise budget or use chunked"),
                "max_model_len",
                max(knobs.budget, _LEAST_CONTEXT),
            )
        return knobs
