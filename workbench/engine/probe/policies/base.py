"""What a policy is: a way to call vLLM's own ``schedule()`` once; and how a policy that fails is kept from vLLM."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from workbench.engine.probe.wire import KnobChange, Step

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.core.sched.scheduler import Scheduler

StockSchedule = Callable[[bool], "SchedulerOutput"]  # schedule(throttle_prefills)


class Policy(ABC):
    """One scheduling policy.

    A policy is made when it is switched to and lives until the next switch, so it may keep state between steps.
    Before each step the scheduler sets the token budget (``max_num_scheduled_tokens``) and the chunk
    (``long_prefill_token_threshold``) to the knobs; a policy may lower either for the step. What else it changes on
    the scheduler, :meth:`leave` puts back. Requests that it takes out of vLLM's queues for a step, it puts back
    before :meth:`schedule` returns.

    Attributes:
        predicted_ms: what the step that was planned last is expected to take; none for a policy that does not
            predict.
    """

    name: ClassVar[str]
    predicted_ms: float | None = None

    def enter(self, scheduler: Scheduler) -> None:  # noqa: B027  most policies have nothing to prepare
        """Take over: requests may already wait and run, in an order that another policy left behind."""

    @abstractmethod
    def schedule(self, scheduler: Scheduler, knobs: KnobChange, stock: StockSchedule) -> SchedulerOutput:
        """Plan one step by calling ``stock`` exactly once, and return what it returned."""

    def learn(self, step: Step, seconds: float) -> None:  # noqa: B027  most policies learn nothing
        """See a step that is done, off the critical path; steps come in order, some may be missing.

        Args:
            step: its record: parts with tokens, context and whether they are prefill, start and end.
            seconds: how long it held the engine: from its scheduling, or from the end of the step before where that
                came later (two steps in flight), to its end.
        """

    def leave(self, scheduler: Scheduler) -> None:  # noqa: B027  most policies have nothing to put back
        """Undo what the policy did to the scheduler, before another one takes over."""


def plan(
    policy: Policy,
    scheduler: Scheduler,
    knobs: KnobChange,
    stock: StockSchedule,
    failed: Callable[[Exception], None],
) -> SchedulerOutput:
    """Let a policy plan one step; if the policy fails, vLLM still gets a step.

    An error of vLLM's own ``schedule()`` goes through as it would without us.

    Args:
        policy: the policy in force.
        scheduler: vLLM's scheduler.
        knobs: those in force.
        stock: vLLM's own schedule().
        failed: told of the policy's error; puts the scheduler back as it was, and another policy in force.
    """
    planned: list[SchedulerOutput] = []
    stock_error: list[Exception] = []

    def once(throttle: bool) -> SchedulerOutput:
        if planned:
            raise RuntimeError(f"policy {policy.name} called the stock schedule twice in one step")
        try:
            planned.append(stock(throttle))
        except Exception as error:
            stock_error.append(error)
            raise
        return planned[0]

    try:
        policy.schedule(scheduler, knobs, once)
    except Exception as error:
        if stock_error:
            raise
        failed(error)
    else:
        if not planned:
            failed(RuntimeError(f"policy {policy.name} did not call the stock schedule"))
    return planned[0] if planned else stock(False)
