"""What a policy is: a way to call vLLM's own ``schedule()`` once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from workbench.engine.probe.wire import KnobChange

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.core.sched.scheduler import Scheduler

StockSchedule = Callable[[bool], "SchedulerOutput"]  # schedule(throttle_prefills)


class Policy(ABC):
    """One scheduling policy.

    A policy is made when it is switched to and lives until the next switch, so it may keep state between steps.
    It may set scheduler fields that vLLM reads on every step and must leave none behind that :meth:`leave` does
    not put back.
    """

    name: ClassVar[str]

    @abstractmethod
    def schedule(self, scheduler: Scheduler, knobs: KnobChange, stock: StockSchedule) -> SchedulerOutput:
        """Plan one step by calling ``stock`` exactly once."""

    def leave(self, scheduler: Scheduler) -> None:  # noqa: B027  most policies have nothing to put back
        """Undo what the policy did to the scheduler, before another one takes over."""
