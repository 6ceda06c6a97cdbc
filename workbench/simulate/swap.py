"""Preemption by swap: a preempted request's KV blocks go to host memory and come back when it runs again.

vLLM V1 preempts by recompute only, so what this says is an **estimate**. It uses vLLM's own way in for KV that comes
from elsewhere (the scheduler side of a KV connector): a request that was swapped out is told to have so many tokens
computed already, and the step that takes it in pays for the load. Blocks that are taken from a victim are written out
before the step that uses them, which pays for that. Where the host has no room, the victim is computed again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.simulate.job import Swap

if TYPE_CHECKING:
    from vllm.v1.request import Request


class HostPool:
    """KV in host memory; to vLLM's scheduler it is a KV connector.

    Args:
        swap: size and speed.
        block_size: tokens in a block.

    Attributes:
        out_blocks: written out so far.
        in_blocks: loaded back so far.
        full: victims for whom there was no room.
    """

    supports_divergent_local_hybrid_hits = False
    requires_kv_delivery = False

    def __init__(self, swap: Swap, block_size: int) -> None:
        self._swap, self._block_size = swap, block_size
        self._held: dict[str, int] = {}  # tokens, by request
        self._used = 0
        self._due_s = 0.0  # transfers that the next step pays for
        self.out_blocks = self.in_blocks = self.full = 0

    def put(self, request: Request) -> bool:
        """Write a victim's KV out; false where the host has no room for it."""
        tokens = min(request.num_computed_tokens, request.num_tokens)
        blocks = self._blocks(tokens)
        self._drop(request.request_id)  # what was loaded from is stale
        if not blocks or self._used + blocks > self._swap.blocks:
            self.full += bool(blocks)
            return False
        self._held[request.request_id] = tokens
        self._used += blocks
        self.out_blocks += blocks
        self._due_s += blocks * self._swap.out_s
        return True

    def cost(self, step_s: float) -> float:
        """How long a step takes together with the transfers that it pays for, in seconds."""
        due, self._due_s = self._due_s, 0.0
        return max(step_s, due) if self._swap.overlap else step_s + due

    @property
    def used_blocks(self) -> int:
        """Blocks in host memory."""
        return self._used

    def get_num_new_matched_tokens(self, request: Request, local_tokens: int) -> tuple[int, bool]:
        """Tokens beyond those in the local cache; the last one is always computed, as its output is what is wanted."""
        held = self._held.get(request.request_id, 0)
        return max(0, min(held, request.num_tokens - 1) - local_tokens), False

    def update_state_after_alloc(self, request: Request, _blocks: Any, external_tokens: int) -> None:
        """A request runs again: its KV is loaded, and the host's room is free."""
        if request.request_id in self._held:
            blocks = self._blocks(external_tokens)
            self.in_blocks += blocks
            self._due_s += blocks * self._swap.in_s
            self._drop(request.request_id)

    def request_finished(self, request: Request, _block_ids: Any) -> tuple[bool, None]:
        """One that was aborted while it was out leaves the host."""
        self._drop(request.request_id)
        return False, None

    def reset_cache(self) -> bool:
        """There is nothing of finished requests here."""
        return True

    def on_new_request(self, request: Request) -> None:
        """Nothing to prepare."""

    def build_connector_meta(self, _output: Any) -> None:
        """No worker is there to be told."""

    def has_pending_block_frees(self) -> bool:
        """Blocks are free at once: the write-out is in the time of the step that uses them."""
        return False

    has_pending_push_work = has_pending_block_frees

    def get_kv_connector_stats(self) -> None:
        """None are kept for vLLM."""

    def take_events(self) -> tuple[()]:
        """None are made."""
        return ()

    def _blocks(self, tokens: int) -> int:
        return -(-tokens // self._block_size)

    def _drop(self, name: str) -> None:
        self._used -= self._blocks(self._held.pop(name, 0))
