"""The engine's loop in virtual time: requests come, steps take what a step-time model says, tokens go out."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from operator import attrgetter, itemgetter
from typing import Any

from vllm.v1.core.sched.output import SchedulerOutput
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request, RequestStatus

from workbench.engine.probe import wire
from workbench.errors import WorkbenchError

StepTime = Callable[[Sequence[wire.Part]], float]  # what a step holds -> seconds

_TOKEN = 7  # the model's answer to everything
_PATIENCE = 3  # steps in a row that may come out empty, with nothing running


class StuckError(WorkbenchError):
    """Requests are left, nothing runs, and no step holds any of them."""


@dataclass
class Played:
    """What came of a run in virtual time; all times in virtual seconds.

    Attributes:
        steps: the records of the steps, as the probe sends them.
        tokens_s: by request, when each output token came.
        ended_s: by request, when it ended; not for those that were aborted or are still there.
        cached: by request that got a first token, prompt tokens that came from the prefix cache.
        replies: to the knob changes.
        faults: errors of the probe, of policies for instance.
        hello: what the scheduler says of itself.
    """

    steps: list[wire.Step] = field(default_factory=list)
    tokens_s: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    ended_s: dict[str, float] = field(default_factory=dict)
    cached: dict[str, int] = field(default_factory=dict)
    replies: list[wire.KnobReply] = field(default_factory=list)
    faults: list[wire.Fault] = field(default_factory=list)
    hello: wire.SchedulerHello | None = None
    dropped: int = 0

    def send(self, record: wire.Record) -> None:
        """Take a record of the probe."""
        match record:
            case wire.Step():
                self.steps.append(record)
            case wire.KnobReply():
                self.replies.append(record)
            case wire.Fault():
                self.faults.append(record)
            case wire.SchedulerHello():
                self.hello = record

    def fault(self, where: str, error: BaseException) -> None:
        """Take an error of the probe itself."""
        self.send(wire.Fault(where=where, error=f"{type(error).__name__}: {error}"))


@dataclass
class _Flying:
    """A step that is computed: what it holds, who gets a token of it, when it ends."""

    plan: SchedulerOutput
    samples: list[bool]
    end_s: float


class VirtualLoop:
    """One scheduler of the probe, and a device that computes its steps one after the other.

    Args:
        scheduler: a probed scheduler, as ``bare.make_scheduler`` makes it; its clocks and ends become virtual.
        step_time: how long a step with these parts takes, in seconds.
        requests: each comes at its ``arrival_time``.
        changes: when knobs change, and to what; of several that are due the newest counts, as on the live engine.
        aborts: when which request is aborted.
        depth: steps that are planned before the first must be done; 2 with async scheduling.
        start_s: the time at which the loop begins.
    """

    def __init__(
        self,
        scheduler: Any,
        step_time: StepTime,
        requests: Iterable[Request],
        changes: Iterable[tuple[float, wire.KnobChange]] = (),
        aborts: Iterable[tuple[float, str]] = (),
        depth: int = 1,
        start_s: float = 0.0,
    ) -> None:
        self.scheduler, self.now = scheduler, start_s
        self._step_time, self._depth = step_time, depth
        self._arrivals = deque(sorted(requests, key=attrgetter("arrival_time")))
        self._changes = deque(sorted(changes, key=itemgetter(0)))
        self._aborts = deque(sorted(aborts, key=itemgetter(0)))
        self._flying: deque[_Flying] = deque()
        self._free_s, self._empty = start_s, 0  # when the device is free; empty steps in a row
        self.played = Played()
        scheduler.clock = scheduler.wall = lambda: self.now
        scheduler.connect(self.played, self)

    def latest(self) -> wire.KnobChange | None:
        """The newest knob change that is due: what the scheduler asks before each step."""
        change = None
        while self._changes and self._changes[0][0] <= self.now:
            change = self._changes.popleft()[1]
        return change

    def run(self, until_s: float | None = None) -> Played:
        """Play until every request has ended, or to a point in time; may be called again to go on.

        Raises:
            StuckError: no step holds any of the requests that are left, and nothing is to come that could help.
        """
        while until_s is None or self.now < until_s:
            if not self.turn():
                break
        return self.played

    def turn(self) -> bool:
        """Take in what is due and plan a step, or go to the next event; False when nothing is left.

        Raises:
            StuckError: as for :meth:`run`.
        """
        self._turn_up()
        if not self.scheduler.has_unfinished_requests() and not self._flying:
            return self._skip()
        if not (self._plan() and len(self._flying) < self._depth):
            self._wait()
        return True

    def _turn_up(self) -> None:
        """Requests and aborts that are due reach the scheduler."""
        while self._arrivals and self._arrivals[0].arrival_time <= self.now:
            self.scheduler.add_request(self._arrivals.popleft())
        while self._aborts and self._aborts[0][0] <= self.now:
            self.scheduler.finish_requests(self._aborts.popleft()[1], RequestStatus.FINISHED_ABORTED)

    def _plan(self) -> bool:
        """Plan a step and start it on the device; False when it is empty."""
        plan = self.scheduler.schedule()
        if not plan.num_scheduled_tokens:
            return False
        self._empty = 0
        begin = max(self.now, self._free_s)
        self._free_s = begin + self._step_time(self.scheduler.planned().parts)
        self.scheduler.get_grammar_bitmask(plan)  # vLLM asks while the workers compute: the probe does its books then
        samples = [not self.scheduler.requests[name].is_prefill_chunk for name in plan.num_scheduled_tokens]
        self._flying.append(_Flying(plan, samples, self._free_s))
        return True

    def _wait(self) -> None:
        """Go to the end of the step that runs, or where none does, to the next event."""
        if self._flying:
            self._finish(self._flying.popleft())
            return
        self._empty += 1
        if self._empty >= _PATIENCE and not self._skip():
            left = sorted(self.scheduler.requests)
            raise StuckError(
                f"virtual engine at {self.now:g} s: {len(left)} requests are left ({', '.join(left[:5])}), expected a "
                "step that holds one of them; a policy keeps them all out, or the KV pool is smaller than one of them"
            )

    def _finish(self, step: _Flying) -> None:
        self.now = max(self.now, step.end_s)
        self._turn_up()  # an abort may hit a request whose output is just in
        names = list(step.plan.num_scheduled_tokens)
        result = ModelRunnerOutput(
            req_ids=names,
            req_id_to_index={name: i for i, name in enumerate(names)},
            sampled_token_ids=[[_TOKEN] if samples else [] for samples in step.samples],
        )
        for client in self.scheduler.update_from_output(step.plan, result).values():
            for one in client.outputs:
                self._hear(one)

    def _hear(self, output: Any) -> None:
        """Take an output of the engine as a client would."""
        self.played.tokens_s[output.request_id] += [self.now] * len(output.new_token_ids)
        if output.prefill_stats is not None:
            self.played.cached[output.request_id] = output.prefill_stats.num_cached_tokens
        if output.finish_reason is not None:
            self.played.ended_s[output.request_id] = self.now

    def _skip(self) -> bool:
        """Go to the next event that could make a difference; False when none is left."""
        events = [self._arrivals[0].arrival_time] if self._arrivals else []
        if self.scheduler.has_unfinished_requests():
            events += [queue[0][0] for queue in (self._changes, self._aborts) if queue]
        if not events:
            return False
        self.now, self._empty = max(self.now, min(events)), 0
        return True
