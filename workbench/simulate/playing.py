"""One job played in virtual time: streams of fixed concurrency, late knobs and requests, and what memory refuses."""

from __future__ import annotations

import itertools
from bisect import insort
from collections import defaultdict, deque
from collections.abc import Callable
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any

from vllm.v1.request import RequestStatus

from workbench.engine.probe.wire import KnobChange, Part
from workbench.simulate import step_times
from workbench.simulate.job import Ask, SimJob
from workbench.simulate.loop import VirtualLoop
from workbench.simulate.made_requests import RequestMaker, refusal
from workbench.simulate.rows import Recorder
from workbench.simulate.scheduler import scheduler_of
from workbench.simulate.swap import HostPool

_LOOK = 16  # steps between two looks at whether there is something else to do: 5 ms or so
_arrival = attrgetter("arrival_time")


class JobLoop(VirtualLoop):
    """Plays a job; :meth:`advance` goes on from where it stopped.

    Args:
        job: what to play.
        folder: where the made-up model's configuration may be written.

    Attributes:
        recorder: has the rows.
        ended: requests that have come to their end, whatever it was.
    """

    def __init__(self, job: SimJob, folder: Path) -> None:
        scheduler = scheduler_of(job, folder)
        super().__init__(scheduler, self._seconds, (), depth=job.depth)
        self._job, self.recorder, self.ended = job, Recorder(job.activation, job.delivery_s), 0
        self._made = RequestMaker(job)
        self._time_of = step_times.load(job.step_time)
        self._host = HostPool(job.swap, job.block_size) if job.swap else None
        if self._host is not None:
            scheduler.swap_to(self._host)
        scheduler.connect(self.recorder, self)
        self._live: dict[str, tuple[Ask, float]] = {}  # the request, and since when it counts as planned
        self._doomed: list[str] = []  # requests that the device has no memory for, in the step that is planned
        self._until_s: float | None = None
        self._interval_s = 0.0  # of the step that was planned last
        self._first_s: dict[str, float] = {}
        self._tokens: dict[str, int] = defaultdict(int)  # output tokens of those that are there
        self._last_s: dict[str, float] = {}  # when the last of them came
        self._cached: dict[str, int] = {}
        self._planned: dict[str, float] = {}  # of those whose time of arrival is now that at the scheduler
        asks = sorted(job.requests, key=_arrival)
        self._streams: dict[str, deque[Ask]] = defaultdict(deque)  # of fixed concurrency: those that wait for a place
        open_loop: list[Ask] = []
        for ask in asks:
            (self._streams[ask.class_name] if ask.class_name in job.concurrency else open_loop).append(ask)
        for ask in open_loop:
            self._send(ask)
        self._arrivals: deque[Any] = deque(open_loop)
        for name, queue in self._streams.items():
            for _ in range(min(job.concurrency[name], len(queue))):
                self._bring(queue.popleft())
        self.recorder.knobs(job.knobs, 0.0, in_force=True)
        for at_s, change in sorted(job.changes, key=itemgetter(0)):
            self.recorder.knobs(change, at_s)
            self._changes.append((at_s, change))
        self._changes.appendleft((0.0, job.knobs))

    def advance(self, until_s: float | None, pause: Callable[[], bool]) -> bool:
        """Play on; whether the job is over.

        Args:
            until_s: stop when the clock is here, in virtual seconds; none is to the end.
            pause: asked every few steps; true stops here.
        """
        self._until_s = until_s
        for count in itertools.count(1):
            if until_s is not None and self.now >= until_s:
                return False
            if not self.turn():
                return True
            if count % _LOOK == 0 and pause():
                return False
        return False

    def set_knobs(self, change: KnobChange) -> None:
        """Set knobs for the next step."""
        self.recorder.knobs(change, self.now)
        insort(self._changes, (self.now, change), key=itemgetter(0))

    def join(self, ask: Ask) -> None:
        """Let one more request come, now."""
        ask.arrival_time = self.now
        self._bring(ask)

    def cancel(self) -> None:
        """End all requests that are there or are still to come."""
        self.scheduler.finish_requests(None, RequestStatus.FINISHED_ABORTED)
        self.scheduler.settle()
        for ask, planned_s in list(self._live.values()):
            self._end(ask, planned_s, "cancelled", sent_s=planned_s)
        left = [*self._arrivals, *(ask for queue in self._streams.values() for ask in queue)]
        for ask in sorted(left, key=_arrival):
            self.recorder.request(ask, self._planned_s(ask), status="cancelled", output_tokens=0)
            self.ended += 1
        self._arrivals.clear()
        self._streams.clear()

    def give_up(self, why: str) -> None:
        """Say of all requests that are left that nothing is known of their end."""
        for ask, planned_s in self._live.values():
            self.recorder.request(ask, planned_s, sent_s=planned_s, status="unfinished", error=why)
        for ask in (*self._arrivals, *(ask for queue in self._streams.values() for ask in queue)):
            self.recorder.request(ask, self._planned_s(ask), status="unfinished", error=why)

    @property
    def facts(self) -> dict[str, float]:
        """What was counted beside the rows."""
        facts: dict[str, float] = {
            "virtual_s": self.now,
            "steps": self.recorder.steps,
            "preemptions": self.recorder.preemptions,
        }
        if self._host is not None:
            host = self._host
            facts |= {"swap_out_blocks": host.out_blocks, "swap_in_blocks": host.in_blocks, "swap_full": host.full}
        return facts

    def _seconds(self, parts: Any) -> float:
        """How long the step that was just planned takes, and note when it begins."""
        if self._job.most_step_tokens is not None:
            self._survive(parts, self._job.most_step_tokens)
        seconds, self._interval_s = self._time_of(parts)
        if self._host is not None:
            waits = self._host.cost(seconds) - seconds
            seconds, self._interval_s = seconds + waits, self._interval_s + waits
        return seconds

    def _plan(self) -> bool:
        free_s = self._free_s
        planned = super()._plan()
        if planned:
            begin = self.recorder.starts[self.scheduler.steps_planned] = max(self.now, free_s)
            self._free_s = begin + self._interval_s  # before its output is there, if a pipeline has stages
        while self._doomed:
            self.scheduler.finish_requests(self._doomed.pop(), RequestStatus.FINISHED_ERROR)
        return planned

    def _skip(self) -> bool:
        before_s = self.now
        more = super()._skip()
        if self._until_s is not None and self.now > self._until_s:  # what is due then comes first
            self.now = max(before_s, self._until_s)
        return more

    def _survive(self, parts: list[Part], most: int) -> None:
        """Leave out the prompts that make a step too large for the device's memory: they end as out of memory.

        A live engine would die of that step, and all its requests with it. Here only the cause ends, so that the
        others still say what they would have met.
        """
        total = sum(part.tokens for part in parts)
        while total > most and any(part.prefill for part in parts):
            worst = max((part for part in parts if part.prefill), key=attrgetter("tokens"))
            why = f"oom: a step of {total} tokens, the device has memory for {most}; a live engine would die here"
            parts.remove(worst)
            self._doomed.append(worst.request)
            ask, planned_s = self._live[worst.request]
            self._end(ask, planned_s, "error", sent_s=planned_s, error=why)
            total -= worst.tokens

    def _turn_up(self) -> None:
        while self._arrivals and self._arrivals[0].arrival_time <= self.now:
            ask = self._arrivals.popleft()
            planned_s, refused = self._planned_s(ask), refusal(ask, self._job)
            if refused:
                self._end(ask, planned_s, "error", sent_s=planned_s, error=refused)
                continue
            self._live[ask.request] = ask, planned_s
            self.scheduler.add_request(self._made(ask))

    def _hear(self, output: Any) -> None:
        name = output.request_id
        if output.new_token_ids:
            self._tokens[name] += len(output.new_token_ids)
            self._last_s[name] = self._seen_s
        if output.prefill_stats is not None:
            self._first_s[name], self._cached[name] = self._seen_s, output.prefill_stats.num_cached_tokens
        if output.finish_reason is not None:
            ask, planned_s = self._live[name]
            self._end(ask, planned_s, "ok", sent_s=planned_s, finish_reason=str(output.finish_reason))

    def _end(self, ask: Ask, planned_s: float, status: str, **outcome: Any) -> None:
        """Write down how a request ended, and let the next of its stream come."""
        name = ask.request
        self._live.pop(name, None)
        self.ended += 1
        outcome |= {
            "status": status,
            "done_s": self._seen_s,
            "first_s": self._first_s.pop(name, None),
            "last_s": self._last_s.pop(name, None),
            "cached_tokens": self._cached.pop(name, None),
            "output_tokens": self._tokens.pop(name, 0),
        }
        self.recorder.request(ask, planned_s, **outcome)
        queue = self._streams.get(ask.class_name)
        if queue:
            following = queue.popleft()
            following.arrival_time = max(self._seen_s, following.arrival_time)
            self._bring(following)

    def _bring(self, ask: Ask) -> None:
        self._send(ask)
        insort(self._arrivals, ask, key=_arrival)

    def _send(self, ask: Ask) -> None:
        """A client sends it at its planned time; the scheduler has it later."""
        if self._job.admission_s:
            self._planned[ask.request] = ask.arrival_time
            ask.arrival_time += self._job.admission_s

    def _planned_s(self, ask: Ask) -> float:
        return self._planned.get(ask.request, ask.arrival_time)

    @property
    def _seen_s(self) -> float:
        """When a client knows of what happens now."""
        return self.now + self._job.delivery_s
