"""Stock chunked prefill: decodes first, the rest of the budget goes to prefill chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.engine.probe.policies.base import Policy, StockSchedule
from workbench.engine.probe.wire import KnobChange

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.core.sched.scheduler import Scheduler


class Chunked(Policy):
    """vLLM's default; budget and chunk are all there is to turn."""

    name = "chunked"

    def schedule(self, scheduler: Scheduler, knobs: KnobChange, stock: StockSchedule) -> SchedulerOutput:
        """Call the stock scheduler as it is."""
        return stock(False)
