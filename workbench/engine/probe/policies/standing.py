"""Where requests stand in vLLM's scheduler: in which queue, in what order, and what is left of them to compute."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vllm.v1.core.sched.request_queue import SchedulingPolicy, create_request_queue
from vllm.v1.request import RequestStatus

if TYPE_CHECKING:
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.request import Request

QUEUES = ("waiting", "kv_holding_waiting")


class Standing:
    """The scheduler as the engine was started, to go back to when a policy failed."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._policy: SchedulingPolicy = scheduler.policy
        self._chunked = bool(scheduler.scheduler_config.enable_chunked_prefill)

    def restore(self, scheduler: Scheduler) -> None:
        """Put settings and queues back, and every request into the queue that its status says."""
        scheduler.scheduler_config.enable_chunked_prefill = self._chunked
        use_queues(scheduler, self._policy)
        bring_back(scheduler)


def use_queues(scheduler: Scheduler, policy: SchedulingPolicy) -> None:
    """Let vLLM queue and choose victims by ``policy`` from now on; who waits keeps waiting.

    Preempted requests come first and the others in order of arrival, as vLLM's own queues would have them.
    """
    scheduler.policy = policy
    for name in QUEUES:
        queue = create_request_queue(policy)
        for request in sorted(getattr(scheduler, name), key=_turn):
            queue.add_request(request)
        setattr(scheduler, name, queue)


def bring_back(scheduler: Scheduler) -> None:
    """Put every live request that is in none of vLLM's queues back into the one its status says."""
    seen = {*scheduler.running, *scheduler.waiting, *scheduler.kv_holding_waiting}
    for request in scheduler.requests.values():
        if request in seen or request.is_finished():
            continue
        if request.status == RequestStatus.RUNNING:
            scheduler.running.append(request)
        else:
            scheduler.waiting.add_request(request)


def left(request: Request) -> int:
    """Tokens that a running request has still to compute."""
    return int(request.num_tokens_with_spec + request.num_output_placeholders - request.num_computed_tokens)


def ending(request: Request) -> bool:
    """Whether its last token is in flight already (two steps in flight): vLLM passes it over."""
    ahead = request.num_output_placeholders
    return bool(ahead) and request.num_computed_tokens + 2 - ahead >= request.num_prompt_tokens + request.max_tokens


def ready(request: Request) -> bool:
    """Whether vLLM could let a waiting request in: it waits for nothing else, and no stale output is to come."""
    stale = request.num_stale_output_tokens and not request.drop_stale_output
    return request.status in (RequestStatus.WAITING, RequestStatus.PREEMPTED) and not stale


def _turn(request: Request) -> tuple[bool, float]:
    return request.status != RequestStatus.PREEMPTED, request.arrival_time
