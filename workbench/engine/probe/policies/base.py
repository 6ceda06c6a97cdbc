"""What a policy is: a way to call vLLM's own ``schedule()`` once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

import msgspec

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.core.sched.scheduler import Scheduler

StockSchedule = Callable[[bool], "SchedulerOutput"]  # schedule(throttle_prefills)


class HotKnobs(msgspec.Struct, frozen=True):
    """The knobs in force, as the scheduler holds them."""

    revision: int
    budget: int
    chunk: int
    max_running: int
    policy: str
    prefill_every: int = 0


class Policy(ABC):
    """One scheduling policy.

    A policy is made when it is switched to and lives until the next switch, so it may keep state between steps.
    It may set scheduler fields that vLLM reads on every step and must leave none behind that :meth:`leave` does
    not put back.
    """

    name: ClassVar[str]

    @abstractmethod
    def schedule(self, scheduler: Scheduler, knobs: HotKnobs, stock: StockSchedule) -> SchedulerOutput:
        """Plan one step by calling ``stock`` exactly once."""

    def leave(self, scheduler: Scheduler) -> None:  # noqa: B027  most policies have nothing to put back
        """Undo what the policy did to the scheduler, before another one takes over."""
