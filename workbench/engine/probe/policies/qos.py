"""Classes of service: 0 VIP, 1 normal, 2 offline. A VIP overtakes, and is never preempted."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from vllm.v1.core.sched.interface import PauseState
from vllm.v1.core.sched.request_queue import SchedulingPolicy
from vllm.v1.request import RequestStatus

from workbench.engine.probe.policies.base import Policy, StockSchedule
from workbench.engine.probe.policies.classes import NORMAL, OFFLINE, VIP, Classes
from workbench.engine.probe.policies.room import Room
from workbench.engine.probe.policies.standing import ending, left, ready, use_queues
from workbench.engine.probe.wire import KnobChange

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.request import Request


class QoS(Policy):
    """Decodes first, then prefill by class, in the tokens, KV blocks and slots that a step has.

    Where these are short, a request takes from those below it: from the lowest class, there from the one with least
    work done, which then waits at the head of its class. While a VIP prefills, other prefill stays out of the step
    and keeps its KV. VIPs are let in only as many as the pool holds at their longest, so no VIP ever has to go.
    An offline request counts as normal once it is ``aging_s`` old.
    """

    name = "qos"

    def enter(self, scheduler: Scheduler) -> None:
        """Queue first come first served: the order of the classes is made here, step by step."""
        self._before: SchedulingPolicy = scheduler.policy
        use_queues(scheduler, SchedulingPolicy.FCFS)

    def leave(self, scheduler: Scheduler) -> None:
        """Queue as the engine was started to."""
        use_queues(scheduler, self._before)

    def schedule(self, scheduler: Scheduler, knobs: KnobChange, stock: StockSchedule) -> SchedulerOutput:
        """Promise each request its share of the step, which vLLM's own scheduling then carries out."""
        if scheduler.pause_state != PauseState.UNPAUSED:
            return stock(False)
        self._scheduler, self._room = scheduler, Room(scheduler)
        self._door = OFFLINE + 1  # from this class on nobody is let in
        self._entered: list[Request] = []
        self._classes = Classes(scheduler.wall(), knobs.aging_s)
        self._class = self._classes.of
        self._classes.sort(scheduler.waiting)
        decodes = [one for one in scheduler.running if not one.is_prefill_chunk]
        if scheduler.scheduler_config.async_scheduling:
            decodes = [one for one in decodes if not ending(one)]
        if not self._room.promise_all(decodes):
            for request in sorted(decodes, key=lambda one: (self._class(one), -one.num_computed_tokens)):
                self._keep(request, left(request))
        self._prefill(knobs.chunk if sum(scheduler.get_request_counts()) > 1 else 0)
        self._close()
        return stock(False)

    def _prefill(self, chunk: int) -> None:
        """Hand out the budget that is left by class; within a class, those that run go before those that wait."""
        room, prefills = self._room, [one for one in self._scheduler.running if one.is_prefill_chunk]
        queue = deque(one for one in self._scheduler.waiting if ready(one))
        for level in (VIP, NORMAL, OFFLINE):
            served = [one for one in prefills if self._class(one) == level]
            for request in served:
                self._keep(request, min(left(request), chunk or left(request)))
            while queue and self._class(queue[0]) <= level < self._door:
                request = queue.popleft()
                served.append(request)
                if not self._admit(request, min(request.num_tokens, chunk or request.num_tokens)):
                    self._door = level
            if level == VIP and any(one.request_id in room.promised for one in served):
                self._door = NORMAL
                break
        for request in prefills:
            if request.request_id not in room.promised:
                room.hold(request)

    def _keep(self, request: Request, tokens: int) -> None:
        """Let a running request go on, if need be at the cost of those below it; else it pauses and keeps its KV."""
        room, tokens = self._room, min(tokens, self._room.tokens)
        if request.status != RequestStatus.RUNNING or request.request_id in self._scheduler.grants:
            return  # had to yield in this very step
        need = room.growth(request, tokens)
        if need > room.blocks and request.is_prefill_chunk:
            tokens = min(tokens, room.fit(request, room.blocks + sum(map(room.held, self._below(request)))))
            need = room.growth(request, tokens)
        if tokens <= 0 or not self._make_room(request, need, 0):
            room.hold(request)
            return
        room.promise(request, tokens, need)
        if request.is_prefill_chunk:
            self._scheduler.grants[request.request_id] = tokens

    def _admit(self, request: Request, tokens: int) -> bool:
        """Let a waiting request in, if need be in the place of those of lower classes."""
        room, tokens = self._room, min(tokens, self._room.tokens)
        if tokens <= 0:
            return False
        if self._class(request) == VIP:
            vips = [one for one in self._scheduler.running if self._class(one) == VIP] + self._entered
            if vips and not room.all_fit([*vips, request]):
                return False
        if not self._make_room(request, room.admission(request, tokens), 1):
            return False
        room.promise(request, tokens, room.entry(request, tokens))
        room.slots -= 1
        self._entered.append(request)
        self._scheduler.grants[request.request_id] = tokens
        return True

    def _make_room(self, request: Request, blocks: int, slots: int) -> bool:
        """Preempt as few as need be from below, if that is enough and none of them has output in flight."""
        room, victims = self._room, []
        free_blocks, free_slots = room.blocks, max(room.slots, 0)
        if free_blocks >= blocks and free_slots >= slots:
            return True
        for victim in self._below(request):
            victims.append(victim)
            free_blocks, free_slots = free_blocks + room.held(victim), free_slots + 1
            if free_blocks >= blocks and free_slots >= slots:
                break
        else:
            return False
        at_rest = not any(one.num_in_flight_tokens and not one.is_prefill_chunk for one in victims)
        for victim in victims:  # one with output in flight is kept out of this step, and can go in the next
            self._door = min(self._door, self._class(victim))
            (room.evict if at_rest else room.hold)(victim)
        return at_rest and room.blocks >= blocks

    def _below(self, request: Request) -> list[Request]:
        return self._classes.below(request, self._scheduler.running)

    def _close(self) -> None:
        """Let nobody in but those who were promised something; if nobody was, vLLM decides."""
        scheduler, promised = self._scheduler, self._room.promised
        self._classes.sort(scheduler.waiting)  # those who had to go are at the head of the whole queue
        if not promised and not any(one.num_in_flight_tokens for one in scheduler.running):
            scheduler.grants.clear()
            scheduler.running.sort(key=self._class)  # vLLM preempts from the end
            return
        for request in scheduler.waiting:
            if ready(request) and request.request_id not in promised:
                scheduler.grants[request.request_id] = 0  # vLLM's scan of the queue ends here
                return
