"""A closed loop: each step gets as much prefill as keeps its predicted time under the target gap."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice
from typing import TYPE_CHECKING

from workbench.engine.probe.books import parts_of
from workbench.engine.probe.policies.base import Policy, StockSchedule
from workbench.engine.probe.policies.step_time import Load, StepTime
from workbench.engine.probe.wire import KnobChange, Step

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.request import Request

_FIRST = 16  # prompt tokens beside decodes before anything is known of such steps
_RAMP = 2  # largest chunk, against the largest beside decodes so far
_FIRST_WAIT, _LONGEST_WAIT = 4, 32  # steps without room after which a small chunk goes all the same, then twice as many
_LATE_SHARE = 0.02  # steps that may take longer than predicted and margin
_MARGIN, _LEAST_MARGIN, _MOST_MARGIN = 0.1, 0.02, 1.0
_LEFT = 0.5  # share of what the decodes leave of the target that the margin leaves to prefill, at least
_MARGIN_STEP = 0.05
_LOOK_AHEAD = 8  # waiting prompts that are looked at for one step


class TargetGap(Policy):
    """Learns what steps take, and fills each up to the target.

    1. Decodes come first and are never held: each has its token in every step.
    2. The rest of the target, less a margin, is filled with prefill chunks in the order of arrival. While no request
       decodes there is no gap to keep, and prefill has the whole budget.
    3. The margin follows the errors: it grows by a lot when a step takes longer than predicted and margin, and
       shrinks a little when it does not, so that in the long run a share of :data:`_LATE_SHARE` does, however large
       the errors are and whatever they come from (Gibbs and Candès, "Adaptive conformal inference under
       distribution shift", 2021).
    4. Beside decodes it begins with a small chunk, and grows to at most twice the largest that it has seen.
    5. Where nothing fits, a small chunk goes now and then, in ever longer intervals: prefill must not starve, and
       only steps with prefill show that a machine which was slow is itself again.
    """

    name = "target_gap"

    def __init__(self) -> None:
        self._time = StepTime()
        self._margin = _MARGIN
        self._largest = _FIRST // _RAMP
        self._without, self._wait = 0, _FIRST_WAIT  # steps in a row that had no room for prefill, and how many may

    def schedule(self, scheduler: Scheduler, knobs: KnobChange, stock: StockSchedule) -> SchedulerOutput:
        """Put decodes first, and cut the budget to them and the prefill that fits."""
        decodes, prefills = _apart(scheduler.running)
        if decodes:
            scheduler.running[:] = decodes + prefills  # vLLM serves them in this order
            load = _decoding(decodes)
            slots = scheduler.max_num_active_reqs - len(scheduler.running)
            waiting = islice(scheduler.waiting, max(0, min(slots, _LOOK_AHEAD)))
            room = self._room(load, chain(prefills, waiting), knobs)
            scheduler.max_num_scheduled_tokens = min(knobs.budget, load.decodes + room)
        output = stock(False)
        seconds = self._time.predict(Load.of(parts_of(scheduler, output)))
        self.predicted_ms = None if seconds is None else seconds * 1e3
        return output

    def learn(self, step: Step, seconds: float) -> None:
        """Take the step into the step-time model, and its error into the margin."""
        load = Load.of(step.parts)
        if load.prefill and load.decodes:
            if step.predicted_ms is not None:  # of a step that this policy planned
                late = seconds * 1e3 > step.predicted_ms * (1 + self._margin)
                margin = self._margin + _MARGIN_STEP * (late - _LATE_SHARE)
                self._margin = min(max(margin, _LEAST_MARGIN), _MOST_MARGIN)
            self._largest = max(self._largest, load.prefill)
        self._time.learn(load, seconds)

    def leave(self, scheduler: Scheduler) -> None:
        """Put what runs back into the order of arrival."""
        scheduler.running.sort(key=lambda request: request.arrival_time)

    def _room(self, load: Load, prompts: Iterable[Request], knobs: KnobChange) -> int:
        """Prompt tokens that fit beside the decodes."""
        most = min(_RAMP * self._largest, knobs.budget - load.decodes)
        beside = self._time.beside(load)
        if beside is None:
            return min(most, _FIRST)
        target = knobs.target_gap_ms / 1e3
        left = max(target / (1 + self._margin) - beside, _LEFT * (target - beside))
        room, wanted = 0, False
        for request in prompts:
            wanted = True
            context = request.num_computed_tokens  # of a waiting prompt, what the prefix cache holds is not known yet
            rest = request.num_tokens - context
            if knobs.chunk:
                rest = min(rest, knobs.chunk)
            tokens = min(rest, self._time.room(left, context), most - room)
            room += tokens
            left -= self._time.cost(tokens, context)
            if tokens < rest:
                break
        if room:
            self._without, self._wait = 0, _FIRST_WAIT
        elif wanted:
            self._without += 1
            if self._without >= self._wait:
                self._without, self._wait = 0, min(2 * self._wait, _LONGEST_WAIT)
                return min(most, _FIRST)
        return room


def _apart(running: Iterable[Request]) -> tuple[list[Request], list[Request]]:
    """Requests that decode, and those in mid-prompt, each in their order."""
    decodes: list[Request] = []
    prefills: list[Request] = []
    for request in running:
        (prefills if request.is_prefill_chunk else decodes).append(request)
    return decodes, prefills


def _decoding(decodes: Iterable[Request]) -> Load:
    """What the decodes alone make of the next step."""
    tokens = context = 0
    for request in decodes:
        computed = request.num_computed_tokens
        tokens += request.num_tokens_with_spec + request.num_output_placeholders - computed
        context += computed
    return Load(0, 0, tokens, context)
