"""What one step has to give: tokens, KV blocks and slots, and who was promised how much of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.request import Request


class Room:
    """The books of a step while a policy plans it.

    A promise becomes a grant where it is a bound on what vLLM's ``schedule()`` may give (``scheduler.grants``). What is
    promised in sum never exceeds what there is, so vLLM itself has nobody to preempt.

    Blocks are counted as full attention needs them, in every KV cache group: exact for one group, more than enough
    for models whose groups free blocks behind a window.

    Attributes:
        tokens: of the budget, not promised yet.
        blocks: free KV blocks that are not promised yet.
        slots: running requests that could still be let in.
        promised: by request, tokens and blocks.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        manager = scheduler.kv_cache_manager
        self._scheduler, self._pool = scheduler, manager.block_pool
        self._sizes = [one.block_size for one in manager.coordinator.single_type_managers]
        self._ahead = scheduler.num_lookahead_tokens
        self._single = not scheduler.num_spec_tokens  # a decode is one token
        self._longest = self._between(0, scheduler.max_model_len)
        self.tokens: int = scheduler.max_num_scheduled_tokens
        self.blocks: int = self._pool.get_num_free_blocks()
        self.slots: int = (
            scheduler.max_num_active_reqs - len(scheduler.running) - scheduler.num_waiting_for_streaming_input
        )
        self.promised: dict[str, tuple[int, int]] = {}

    def growth(self, request: Request, tokens: int) -> int:
        """Blocks that a running request takes for its next tokens."""
        begin = request.num_computed_tokens + self._ahead
        return self._between(begin, begin + tokens)

    def fit(self, request: Request, blocks: int) -> int:
        """Tokens that a running request can take with so many blocks more."""
        begin, share = request.num_computed_tokens + self._ahead, blocks // len(self._sizes)
        return int(min((-(-begin // size) + share) * size - begin for size in self._sizes))

    def entry(self, request: Request, tokens: int) -> int:
        """Blocks that a waiting request takes in its first step, at most: cached blocks count as well."""
        cached = self._scheduler.kv_cache_manager.prefix_cache_lookup_enabled(request)
        return self._between(0, (request.num_tokens if cached else tokens) + self._ahead)

    def admission(self, request: Request, tokens: int) -> int:
        """Blocks that must be free to let a waiting request in: for the whole prompt where vLLM reserves it."""
        scheduler, manager = self._scheduler, self._scheduler.kv_cache_manager
        full = request.num_tokens if scheduler.scheduler_reserve_full_isl else tokens
        spare = manager.watermark_blocks if scheduler.running else 0
        need = self._between(0, full + self._ahead) + spare
        if need <= self.blocks or not manager.prefix_cache_lookup_enabled(request):
            return need
        shared, hit, _ = manager.get_computed_blocks(request)
        return spare + int(
            manager.coordinator.get_num_blocks_to_allocate(
                request_id=request.request_id,
                num_tokens=max(full, hit),
                new_computed_blocks=shared.blocks,
                num_encoder_tokens=0,
                total_computed_tokens=hit,
                num_local_computed_tokens=hit,
                num_tokens_main_model=max(full, hit),
            )
        )

    def all_fit(self, requests: Iterable[Request]) -> bool:
        """Whether the pool holds these requests at once, even when each becomes as long as it may."""
        longest = self._scheduler.max_model_len
        need = sum(self._between(0, min(one.num_prompt_tokens + one.max_tokens, longest)) for one in requests)
        return need < int(self._pool.num_gpu_blocks)  # one block is vLLM's own

    def held(self, request: Request) -> int:
        """Blocks that come free when a running request is preempted, or fewer where others share them."""
        return self._between(0, request.num_computed_tokens) + self.promised.get(request.request_id, (0, 0))[1]

    def promise(self, request: Request, tokens: int, blocks: int) -> None:
        """Give a request tokens in this step, and the blocks that they take."""
        self.promised[request.request_id] = (tokens, blocks)
        self.tokens -= tokens
        self.blocks -= blocks

    def promise_all(self, decodes: list[Request]) -> bool:
        """Give each of these its next tokens; False, and nothing given, where there is not enough for all.

        This is done in every step, for every request that decodes. While there is much more than they and the longest
        request could take, a block each is close enough.
        """
        groups = len(self._sizes)
        most = groups * len(decodes)
        if self._single and len(decodes) <= self.tokens and self.blocks > most + self._longest:
            self.promised.update(dict.fromkeys([one.request_id for one in decodes], (1, groups)))
            self.tokens -= len(decodes)
            self.blocks -= most
            return True
        promised, all_tokens, all_blocks = {}, 0, 0
        sizes, ahead = self._sizes, self._ahead
        for one in decodes:
            computed = one.num_computed_tokens
            tokens = one.num_tokens_with_spec + one.num_output_placeholders - computed
            blocks, begin = 0, computed + ahead - 1
            for size in sizes:
                blocks += (begin + tokens) // size - begin // size
            promised[one.request_id] = (tokens, blocks)
            all_tokens += tokens
            all_blocks += blocks
        if all_tokens > self.tokens or all_blocks > self.blocks:
            return False
        self.promised.update(promised)
        self.tokens -= all_tokens
        self.blocks -= all_blocks
        return True

    def hold(self, request: Request) -> None:
        """Keep a request out of this step; it keeps its KV."""
        tokens, blocks = self.promised.pop(request.request_id, (0, 0))
        self.tokens += tokens
        self.blocks += blocks
        self._scheduler.grants[request.request_id] = 0

    def evict(self, request: Request) -> None:
        """Preempt a running request; it waits at the head of the queue."""
        self.hold(request)
        scheduler, before = self._scheduler, self._pool.get_num_free_blocks()
        scheduler.running.remove(request)
        scheduler._preempt_request(request, scheduler.clock(), drop_stale_output=scheduler.requires_kv_delivery)
        self.blocks += self._pool.get_num_free_blocks() - before
        self.slots += 1

    def _between(self, begin: int, end: int) -> int:
        return sum(-(-end // size) - -(-begin // size) for size in self._sizes)
