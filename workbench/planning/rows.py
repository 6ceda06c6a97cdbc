"""One setting of a plan, with what it can do, in figures that always come with their label and band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from workbench.engine.command import serve_command
from workbench.models.architecture import hub_id
from workbench.planning.capacity import Capacity
from workbench.planning.limits import limiting
from workbench.planning.plays import Place

BandOf = Literal["own", "best", "none"]


@dataclass(frozen=True)
class Band:
    """How far a capacity may be off, as shares of it.

    Attributes:
        low: with every step as slow as any model that was asked says.
        high: with every step as fast.
        of: "own" was searched for this setting; "best" is that of the best setting, taken over; "none" is a setting
            of a calibrated model, whose label says its error.
    """

    low: float
    high: float
    of: BandOf


@dataclass(frozen=True)
class Row:
    """A setting and its capacity.

    Attributes:
        budget: tokens in a step at most.
        chunk: most tokens of a prompt in a step; 0 is off.
        policy: scheduling policy.
        place: the engine, with its knobs; None where it could not be set up.
        capacity: of it; None where it could not be set up.
        refused: why it could not be.
        band: how far the capacity may be off; None is not known yet.
        same_as: (budget, chunk) of the setting that was played in its place, since the cap cuts nothing here.
    """

    budget: int
    chunk: int
    policy: str
    place: Place | None = None
    capacity: Capacity | None = None
    refused: str = ""
    band: Band | None = None
    same_as: tuple[int, int] | None = None

    @property
    def rate(self) -> float:
        """The capacity, requests/s; 0 where there is none."""
        return self.capacity.low if self.capacity is not None else 0.0

    @property
    def label(self) -> str:
        """Where the figures come from."""
        return f"simulated, {self.place.setup.label}" if self.place is not None else "not simulated"

    @property
    def limit(self) -> str:
        """What keeps it from more, in a few words."""
        if self.place is None or self.capacity is None:
            return self.refused
        return limiting(self.capacity, self.place.knobs.max_running)

    @property
    def command(self) -> str:
        """The ``vllm serve`` command that starts it."""
        if self.place is None:
            return ""
        config = self.place.setup.config
        return serve_command(config.replace(model=hub_id(config.model) or config.model), None, self.place.knobs)

    def rates(self) -> tuple[float, float] | None:
        """The band in requests/s."""
        return (self.rate * self.band.low, self.rate * self.band.high) if self.band is not None else None

    def figures(self, price: float | None = None, need: float | None = None) -> dict[str, Any]:
        """Plain data.

        ``capacity_per_s`` is met and ``not_met_per_s`` is not; ``capacity_low_per_s`` and ``capacity_high_per_s`` are
        the band. At the capacity: ``output_tokens_per_s``, ``tokens_per_s`` (prompts too), ``mfu``, ``kv_mean``,
        ``kv_max``, ``largest_prompt_in_step``, ``goodput_share``. ``largest_step_tokens`` is the most that memory
        allows in one step. ``cost_per_million_output_tokens`` with ``_low`` and ``_high`` where a price is given;
        ``replicas`` for ``need`` requests/s, and ``replicas_worst`` at the low end of the band.
        """
        row: dict[str, Any] = {"budget": self.budget, "chunk": self.chunk, "policy": self.policy, "label": self.label}
        if self.place is None or self.capacity is None:
            return row | {"capacity_per_s": None, "refused": self.refused}
        place, found, at = self.place, self.capacity, self.capacity.at
        facts = at.facts if at is not None else {}
        band, memory, outputs = self.rates(), place.setup.memory, place.load.output_tokens
        row |= {
            "capacity_per_s": found.low,
            "not_met_per_s": found.high,
            "capacity_low_per_s": band[0] if band else None,
            "capacity_high_per_s": band[1] if band else None,
            "band_of": self.band.of if self.band else None,
            "plays": found.plays,
            "stopped": found.stopped,
            "limit": self.limit,
            "misses_above": found.over.misses if found.over is not None else None,
            "reason": found.reason,
            "same_as": list(self.same_as) if self.same_as else None,
            "goodput_share": at.share if at is not None else None,
            "requests_counted": at.requests if at is not None else None,
            "steady": at.steady if at is not None else None,
            "output_tokens_per_s": found.low * outputs,
            "tokens_per_s": found.low * (outputs + place.load.prompt_tokens),
            "mfu": facts.get("mfu"),
            "kv_mean": facts.get("kv_mean"),
            "kv_max": facts.get("kv_max"),
            "kv_tokens": place.setup.blocks * place.setup.block_size,
            "largest_prompt_in_step": facts.get("largest_prompt"),
            "largest_step_tokens": memory.largest_step(self.budget) if memory is not None else None,
            "serve_command": self.command,
        }
        if price is not None and found.low:
            gpus = place.setup.config.gpus
            costs = [_million(price * gpus, rate * outputs) for rate in (found.low, *(band or ()))]
            row["cost_per_million_output_tokens"] = costs[0]
            row["cost_per_million_tokens"] = _million(price * gpus, row["tokens_per_s"])
            if band:  # fewer requests cost more each
                row |= {"cost_low": costs[2], "cost_high": costs[1]}
        if need is not None and found.low:
            row["replicas"] = _replicas(need, found.low)
            row["replicas_worst"] = _replicas(need, band[0]) if band else None
        return row


def _million(per_hour: float, tokens_per_s: float) -> float | None:
    """Cost of a million tokens."""
    return per_hour / 3600 / tokens_per_s * 1e6 if tokens_per_s else None


def _replicas(need: float, each: float) -> int | None:
    """Engines for a rate."""
    return -int(-need // each) if each else None
