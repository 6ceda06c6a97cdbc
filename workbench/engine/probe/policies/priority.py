"""vLLM's own priority scheduling, also in an engine that was started first come first served."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vllm.v1.core.sched.request_queue import SchedulingPolicy

from workbench.engine.probe.policies.base import Policy, StockSchedule
from workbench.engine.probe.policies.standing import use_queues
from workbench.engine.probe.wire import KnobChange

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.core.sched.scheduler import Scheduler


class Priority(Policy):
    """Who waits is let in by class, then by arrival; when KV blocks run out, the lowest class that came last goes.

    What runs keeps its place in the step: a VIP that arrives waits for the budget that a long prefill leaves over,
    and for a slot.
    """

    name = "priority"

    def enter(self, scheduler: Scheduler) -> None:
        """Queue by priority."""
        self._before: SchedulingPolicy = scheduler.policy
        use_queues(scheduler, SchedulingPolicy.PRIORITY)

    def schedule(self, scheduler: Scheduler, knobs: KnobChange, stock: StockSchedule) -> SchedulerOutput:
        """Call the stock scheduler as it is."""
        return stock(False)

    def leave(self, scheduler: Scheduler) -> None:
        """Queue as the engine was started to."""
        use_queues(scheduler, self._before)
