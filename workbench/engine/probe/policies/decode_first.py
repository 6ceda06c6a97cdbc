"""Decode first: prefill waits while any decode runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.engine.probe.policies.base import Policy, StockSchedule
from workbench.engine.probe.wire import KnobChange

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.core.sched.scheduler import Scheduler


class DecodeFirst(Policy):
    """Defers prefill while a decode runs, but for every ``prefill_every``-th step.

    With ``prefill_every`` 0 a steady stream of decodes starves prefill: that is the strict form.
    """

    name = "decode_first"

    def __init__(self) -> None:
        self._step = 0

    def schedule(self, scheduler: Scheduler, knobs: KnobChange, stock: StockSchedule) -> SchedulerOutput:
        """Ask vLLM's own data-parallel prefill throttle to defer prefill in this step."""
        self._step += 1
        if knobs.prefill_every and self._step % knobs.prefill_every == 0:
            return stock(False)
        scheduler.prefill_capacity_bound = False  # any backlog would turn the throttle off
        return stock(True)

    def leave(self, scheduler: Scheduler) -> None:
        """Leave the throttle as vLLM starts with it; it decides anew after its next step."""
        scheduler.prefill_capacity_bound = False
