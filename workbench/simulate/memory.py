"""Where a GPU's memory goes, how many KV blocks are left, and at which step size it runs out. All of one GPU, in bytes.

vLLM 0.32 (``v1/worker/gpu_worker.py``) takes ``gpu_memory_utilization`` of the device, runs one step of the full
budget, and gives the KV pool what weights, that step's activation, graphs and the driver's own buffers leave.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.architecture import Architecture
from workbench.errors import InputError
from workbench.i18n import translate
from workbench.metrics import MemoryFit
from workbench.simulate.presets import Device
from workbench.simulate.shares import Origin, Share, resident
from workbench.simulate.sizes import activation_bytes, kv_numbers
from workbench.simulate.steptime.counted import check_split
from workbench.units import GIB

UTILISATION = 0.92  # vLLM's default
BLOCK = 16  # tokens in a KV block, vLLM's default on GPUs
_LOGIT_BYTES = 2 + 4 + 4  # of one number of the logits: as computed, as float32, and a copy that the sampler sorts


@dataclass(frozen=True, slots=True)
class Memory:
    """The memory of one GPU of an engine.

    Attributes:
        what: model and GPUs, for messages.
        total: of the device.
        limit: what the engine may take: the utilisation's share of it.
        resident: weights, graphs and buffers: there from the start, whatever the step.
        token_bytes: activation of one more token in a step.
        request_bytes: activation of one more row of logits.
        seqs: most requests in a step.
        kv_token_bytes: KV cache of one token.
        block_size: tokens in a KV block.
        fixed_pool: KV pool that was asked for; None is what is left.
        fit: activation by tokens as measured; None is the estimate of ``token_bytes``.
    """

    what: str
    total: float
    limit: float
    resident: tuple[Share, ...]
    token_bytes: float
    request_bytes: float
    seqs: int
    kv_token_bytes: float
    block_size: int
    fixed_pool: float | None = None
    fit: MemoryFit | None = None

    @classmethod
    def of(
        cls,
        architecture: Architecture,
        device: Device,
        tp: int = 1,
        pp: int = 1,
        *,
        seqs: int = 128,
        utilisation: float = UTILISATION,
        weight_bytes: float = 2,
        kv_bytes: float = 2,
        block_size: int = BLOCK,
        graphs: bool = True,
        pool_bytes: float | None = None,
        fit: MemoryFit | None = None,
        measured: Mapping[str, float] | None = None,
    ) -> Memory:
        """Count it.

        Args:
            architecture: the model.
            device: one of the GPUs.
            tp: tensor parallel.
            pp: pipeline parallel; the fullest stage is counted.
            seqs: ``max_num_seqs``.
            utilisation: ``gpu_memory_utilization``.
            weight_bytes: of a weight.
            kv_bytes: of a number in the KV cache.
            block_size: tokens in a KV block.
            graphs: CUDA graphs are captured (not with ``--enforce-eager``).
            pool_bytes: a KV pool of fixed size, ``--kv-cache-memory-bytes``.
            fit: activation by tokens from live peaks (``metrics.memory_fit``) of this model, split and device.
            measured: sizes that an engine has told: ``weights``.

        Raises:
            InputError: the model cannot be split so.
        """
        check_split(architecture, tp, pp)
        weights = (measured or {}).get("weights")
        return cls(
            what=f"{architecture.name} on {tp * pp} x {device.name}",
            total=device.memory,
            limit=device.memory * utilisation,
            resident=resident(architecture, tp, pp, weight_bytes, weights=weights, graphs=graphs),
            token_bytes=activation_bytes(architecture, tp),
            request_bytes=architecture.vocab * _LOGIT_BYTES,
            seqs=seqs,
            kv_token_bytes=kv_numbers(architecture, tp, pp) * kv_bytes,
            block_size=block_size,
            fixed_pool=pool_bytes,
            fit=fit,
        )

    @property
    def activation_origin(self) -> Origin:
        """Whether the activation is measured."""
        return "estimate" if self.fit is None else "measured"

    def activation(self, tokens: float) -> float:
        """What a step of that many tokens needs while it runs, with logits for as many requests as there may be."""
        if not tokens:
            return 0.0
        if self.fit is not None:
            return self.fit.bytes_at(tokens)
        return tokens * self.token_bytes + min(tokens, self.seqs) * self.request_bytes

    def pool(self, budget: int) -> float:
        """The KV pool of an engine that starts with that budget.

        Raises:
            InputError: nothing is left for it.
        """
        needed = sum(one.bytes for one in self.resident)
        room = (self.limit if self.fixed_pool is None else self.total) - needed - self.activation(budget)
        least = self.block_size * self.kv_token_bytes
        pool = room if self.fixed_pool is None else self.fixed_pool
        if pool < least or pool > room:
            parts = ", ".join(f"{one.name} {one.bytes / GIB:.1f}" for one in self.resident)
            got = f"{parts}, activation {self.activation(budget) / GIB:.1f} GiB at a budget of {budget:,}"
            if self.fixed_pool is not None:
                got += f", KV pool {self.fixed_pool / GIB:.1f} GiB"
            has = self.limit if self.fixed_pool is None else self.total
            raise InputError(
                f"memory of {self.what}",
                got,
                f"less than {has / GIB:.1f} GiB a GPU",
                "take more GPUs, FP8 or less budget",
            )
        return pool

    def blocks(self, budget: int) -> int:
        """KV blocks of that engine."""
        return int(self.pool(budget) // (self.block_size * self.kv_token_bytes))

    def room(self, budget: int) -> float:
        """What a step may need before the device is full: all that weights, pool and buffers leave of it."""
        return self.total - sum(one.bytes for one in self.resident) - self.pool(budget)

    def largest_step(self, budget: int) -> int:
        """Tokens of the largest single step that fits an engine started with that budget, chunking or not."""
        room = self.room(budget)
        if self.fit is not None:
            return self.fit.tokens_in(room)
        with_rows = self.seqs * (self.token_bytes + self.request_bytes)
        if room < with_rows:
            return int(room / (self.token_bytes + self.request_bytes))
        return int((room - self.seqs * self.request_bytes) / self.token_bytes)

    def dies_at(self, budget: int, longest: int) -> int | None:
        """The shortest prompt that, prefilled in one step, is too long for the memory; None where ``longest`` fits."""
        limit = self.largest_step(budget) + 1
        return limit if limit <= longest else None

    def warning(self, budget: int, longest: int) -> str:
        """One line beside the budget; empty where the longest prompt fits in one step or is cut by the budget."""
        limit = self.dies_at(budget, longest)
        if limit is None:
            return ""
        return (
            f"without chunks, a prompt of {limit:,} tokens or more dies: {self.activation(limit) / GIB:.1f} GiB of "
            f"activation, {self.room(budget) / GIB:.1f} GiB free ({self.activation_origin})"
        )

    def beside(self, budget: int, started: int, longest: int) -> str:
        """One line beside the hot budget of an engine that runs: what a full step needs, and when a whole prompt dies.

        Args:
            budget: tokens of a step now.
            started: the budget that it was started with, for which its KV pool leaves room.
            longest: prompt that it takes.
        """
        need, room, limit = self.activation(budget), self.room(started), self.dies_at(started, longest)
        dies = translate("the longest prompt fits into one step")
        if limit is not None:
            dies = translate("unchunked, {limit:,} tokens or more die", limit=limit)
        return translate(
            "A step of {budget:,} tokens needs {need:.2f} GiB of {room:.1f} free; {dies} ({origin}).",
            budget=budget,
            need=need / GIB,
            room=room / GIB,
            dies=dies,
            origin=translate(self.activation_origin),
        )

    def table(self, budgets: Iterable[int]) -> list[dict[str, Any]]:
        """One row a budget: activation, pool, blocks, tokens they hold, largest step; for charts and the planner."""
        rows = []
        for budget in budgets:
            blocks = self.blocks(budget)
            rows.append(
                {
                    "budget": budget,
                    "activation_bytes": self.activation(budget),
                    "kv_pool_bytes": self.pool(budget),
                    "blocks": blocks,
                    "kv_tokens": blocks * self.block_size,
                    "largest_step_tokens": self.largest_step(budget),
                    "origin": self.activation_origin,
                }
            )
        return rows

    def shares(self, budget: int) -> tuple[Share, ...]:
        """All parts, for a stacked bar: they and what is free add up to ``total``."""
        activation = Share(
            "activation", self.activation(budget), self.activation_origin, f"a step of {budget:,} tokens"
        )
        pool = Share("KV pool", self.pool(budget), "estimate", "asked for" if self.fixed_pool else "what is left")
        return (*self.resident, activation, pool)
