"""Whole prompts: a prompt waits until it fits into one step, and is never split."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.engine.probe.policies.base import Policy, StockSchedule
from workbench.engine.probe.wire import KnobChange

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.core.sched.scheduler import Scheduler


class Monolithic(Policy):
    """Chunked prefill switched off, first come first served.

    A prompt that was already split when the policy came in finishes in chunks.
    """

    name = "monolithic"

    def enter(self, scheduler: Scheduler) -> None:
        """Remember whether the engine was started with chunks."""
        self._before = bool(scheduler.scheduler_config.enable_chunked_prefill)

    def schedule(self, scheduler: Scheduler, knobs: KnobChange, stock: StockSchedule) -> SchedulerOutput:
        """Refuse to split a waiting prompt in this step."""
        scheduler.scheduler_config.enable_chunked_prefill = False
        scheduler.scheduler_config.long_prefill_token_threshold = 0  # the cap would split it all the same
        return stock(False)

    def leave(self, scheduler: Scheduler) -> None:
        """Allow chunks again."""
        scheduler.scheduler_config.enable_chunked_prefill = self._before
