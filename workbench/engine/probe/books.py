"""The books of the scheduler's steps: noted when a step was planned, completed and sent when its output is in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from workbench.engine.probe import wire

if TYPE_CHECKING:
    from vllm.v1.core.sched.output import SchedulerOutput
    from vllm.v1.core.sched.scheduler import Scheduler
    from vllm.v1.engine import EngineCoreOutputs
    from vllm.v1.outputs import ModelRunnerOutput


class Records(Protocol):
    """Where records go: a socket of the workbench, or a list of the simulation."""

    dropped: int

    def send(self, record: wire.Record) -> None:
        """Take one record; never blocks and never raises."""

    def fault(self, where: str, error: BaseException) -> None:
        """Take an error of the probe itself."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A step that was planned and not noted yet."""

    output: SchedulerOutput
    step: int
    entered_s: float
    schedule_us: float
    before_us: float
    revision: int
    predicted_ms: float | None


@dataclass(frozen=True, slots=True)
class Done:
    """A step whose output is in and whose record was not sent yet."""

    output: SchedulerOutput
    result: ModelRunnerOutput
    outputs: dict[int, EngineCoreOutputs]
    ended_s: float
    idle: bool  # nothing was left to compute after it


class Books:
    """Everything that is done for the records, and may wait until the workers compute.

    Args:
        scheduler: whose steps these are.
        records: where the records go.
        learn: told of each step that is done, and of its seconds: those from the end of the step before, which is the
            gap that a decode sees, or from when it was planned if the engine was idle before.
    """

    def __init__(self, scheduler: Scheduler, records: Records, learn: Callable[[wire.Step, float], None]) -> None:
        self.records = records
        self._scheduler, self._learn = scheduler, learn
        self._planned: Planned | None = None
        self._done: list[Done] = []
        self._pending: dict[int, wire.Step] = {}
        self._preempted: list[str] = []
        self._last_end_s, self._was_idle = 0.0, True

    @property
    def behind(self) -> bool:
        """Whether a planned step is not noted yet."""
        return self._planned is not None

    def plan(self, planned: Planned) -> None:
        """Keep a step until there is time to note it."""
        self._planned = planned

    def preempt(self, request: str) -> None:
        """Keep a preemption for the record of the step that it made room for."""
        self._preempted.append(request)

    def finish(self, done: Done) -> None:
        """Keep a step's output until there is time to send its record."""
        self._done.append(done)

    def note_planned(self) -> wire.Step | None:
        """The record so far of the step that was planned last; none if it was noted before."""
        planned, self._planned = self._planned, None
        return None if planned is None else self._note(planned)

    def catch_up(self) -> None:
        """Note the step that was planned, send those that are done. Never raises."""
        try:
            self.note_planned()
            while self._done:
                self._send(self._done.pop(0))
        except Exception as error:  # noqa: BLE001  a measuring fault must not end somebody's engine
            self.records.fault("step record", error)

    def _note(self, planned: Planned) -> wire.Step:
        running, waiting = self._scheduler.get_request_counts()
        record = wire.Step(
            step=planned.step,
            scheduled_s=planned.entered_s,
            schedule_us=planned.schedule_us,
            probe_us=planned.before_us,
            revision=planned.revision,
            running=running,
            waiting=waiting,
            kv_use=self._scheduler.kv_cache_manager.usage,
            preempted=self._preempted,
            parts=list(parts_of(self._scheduler, planned.output)),
            predicted_ms=planned.predicted_ms,
        )
        self._pending[planned.step], self._preempted = record, []
        return record

    def _send(self, done: Done) -> None:
        record = self._pending.pop(getattr(done.output, wire.STEP_ATTRIBUTE, -1), None)
        if record is None:
            return
        hello: Any = getattr(done.result, wire.HELLO_ATTRIBUTE, None)
        if hello is not None:
            self.records.send(hello)
        emitted = {
            one.request_id: len(one.new_token_ids)
            for client in done.outputs.values()
            for one in client.outputs
            if one.new_token_ids
        }
        for part in record.parts:
            part.emitted = emitted.get(part.request, 0)
        record.work = getattr(done.result, wire.WORK_ATTRIBUTE, None)
        record.end_s, record.dropped = done.ended_s, self.records.dropped
        self.records.send(record)
        seconds = record.end_s - (record.scheduled_s if self._was_idle else self._last_end_s)
        self._last_end_s, self._was_idle = record.end_s, done.idle
        self._learn(record, seconds)


def parts_of(scheduler: Scheduler, output: SchedulerOutput) -> Iterator[wire.Part]:
    """What each request has in a step that vLLM has just planned."""
    requests, longest_decode = scheduler.requests, 1 + scheduler.num_spec_tokens
    for name, tokens in output.num_scheduled_tokens.items():
        request = requests.get(name)
        if request is None:  # ended from outside in the meantime
            continue
        context = request.num_computed_tokens - tokens  # schedule() has already moved it forward
        # After a preemption output tokens are computed again as well: that is prefill too.
        prefill = context < request.num_prompt_tokens or tokens > longest_decode
        yield wire.Part(name, tokens, context, prefill)
