"""Our end of the probe: records become rows of the trace, knobs go out."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import zmq

from workbench.config import Knobs
from workbench.engine.decode_floor import DecodeFloor
from workbench.engine.probe import wire
from workbench.engine.probe.knob_page import NAME as KNOBS
from workbench.engine.probe.knob_page import KnobPage
from workbench.trace import Sink

# vLLM makes "cmpl-<ours>-<prompt index>-<8 random characters>" of the id that we send to /v1/completions, and
# "chatcmpl-<ours>-<8 random characters>" of one that goes to /v1/chat/completions.
_INTERNAL_ID = re.compile(r"chatcmpl-(?P<chat>.+)-[0-9a-zA-Z]{8}|(?:cmpl-)?(?P<ours>.+)-\d+-[0-9a-zA-Z]{8}")
_POLL_MS = 50
_QUIET_S = 0.1  # without a step after which a run's last one is taken to be in
_SETTLE_S = 2.0  # longest wait for the last steps: others may be using the engine, or it has died with them
_FAULTS = 100  # kept; the first ones tell the cause


class Collector:
    """Receives records in a thread and hands rows to the sink of the run that is going on.

    Args:
        folder: the engine's 0700 socket folder.
        cache_resets: how often the engine was asked before to empty its prefix cache.
    """

    def __init__(self, folder: Path, cache_resets: int = 0) -> None:
        self._records: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PULL)
        self._records.set(zmq.RCVHWM, 0)
        try:
            self._records.bind(wire.endpoint(folder))
            (folder / wire.RECORDS).chmod(0o600)  # the folder keeps others out already
            # One that is there is in the scheduler's memory already: it must not be cut to nothing, not for a moment.
            self._page = KnobPage(folder, create=not (folder / KNOBS).exists())
        except BaseException:
            self._records.close(0)
            raise
        self._decoder = msgspec.msgpack.Decoder(wire.Record)
        self._lock = threading.Lock()
        self._sink: Sink | None = None
        self._zero = 0.0
        self._steps: list[wire.Step] = []  # taken since the last flush
        self._emitted = 0  # output tokens of the steps taken since the run began
        self._names: dict[str, str] = {}
        self.scheduler: wire.SchedulerHello | None = None
        self.workers: dict[int, wire.WorkerHello] = {}
        self.faults: list[str] = []
        self.fault_count = 0  # also of those that were not kept
        self.replies = 0  # to what was written on the knob page
        self.replied_step = 0  # the step that the last of them came before
        self.last_step = 0
        self.decode_floor = DecodeFloor()
        self._cache_resets = cache_resets
        self._dropped = self._dropped_before = 0  # records that the probe could not send, as far as it has said
        self.last_step_s = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="probe-collector", daemon=True)
        self._thread.start()

    def send_knobs(self, revision: int, knobs: Knobs) -> None:
        """Put knobs where the scheduler looks before its next step."""
        with self._lock:
            self._write(revision, knobs)
            self._emit("knobs", [self._knob_row(revision, time.monotonic(), knobs)])

    def send_cache_reset(self, revision: int, knobs: Knobs) -> None:
        """Have the scheduler empty the prefix cache before its next step; the knobs in force stay as they are."""
        with self._lock:
            self._cache_resets += 1
            self._write(revision, knobs)

    @property
    def decode_floor_ms(self) -> float | None:
        """What a quick step without prefill takes on this engine; none until enough of them were seen."""
        return self.decode_floor.ms

    @contextmanager
    def into(
        self, sink: Sink, zero: float, revision: int, knobs: Knobs, arrived: Callable[[], int] = lambda: 0
    ) -> Iterator[None]:
        """Hand rows to ``sink`` inside the block.

        Args:
            sink: where they go.
            zero: CLOCK_MONOTONIC of the run's zero.
            revision: of the knobs in force at its start.
            knobs: those knobs.
            arrived: output tokens that clients have received; the block ends when the steps that made them are in.
        """
        with self._lock:
            self._emitted = 0
            self._sink, self._zero, self._dropped_before = sink, zero, self._dropped
            sink.rows("knobs", [self._knob_row(revision, zero, knobs) | {"applied_s": 0.0}])
        try:
            yield
        finally:
            self._settle(arrived())
            with self._lock:
                self._sink = None

    @property
    def dropped(self) -> int:
        """Records that the probe could not send since the run began, as far as it has said."""
        return self._dropped - self._dropped_before

    def close(self) -> None:
        """Stop receiving and free the socket."""
        self._stop.set()
        self._thread.join(5.0)
        self._records.close(0)

    def _write(self, revision: int, knobs: Knobs) -> None:
        self._page.write(wire.KnobChange(revision=revision, cache_resets=self._cache_resets, **knobs.model_dump()))

    def _settle(self, arrived: int) -> None:
        """Wait until the records of the last steps are in: all that arrived was emitted, and nothing more comes."""
        begun = time.monotonic()
        while (now := time.monotonic()) < begun + _SETTLE_S:
            if now - max(begun, self.last_step_s) > _QUIET_S and self._emitted >= arrived:
                return
            time.sleep(0.01)

    def _run(self) -> None:
        while not self._stop.is_set():
            if not self._records.poll(_POLL_MS):
                continue
            with self._lock:
                try:
                    while True:
                        self._take(self._decoder.decode(self._records.recv(zmq.NOBLOCK)))
                except zmq.Again:
                    pass
                except (msgspec.DecodeError, zmq.ZMQError) as error:
                    self._fault("collector", str(error))
                self._flush()

    def _take(self, record: wire.Record) -> None:
        match record:
            case wire.Step():
                self.last_step_s, self.last_step = time.monotonic(), record.step
                self.decode_floor.see(record)
                self._dropped = record.dropped
                self._emitted += sum(part.emitted for part in record.parts)
                if record.end_s >= self._zero:
                    self._steps.append(record)
            case wire.SchedulerHello():
                self.scheduler = record
            case wire.WorkerHello():
                self.workers[record.rank] = record
            case wire.KnobReply():
                self._applied(record)
                self.replied_step, self.replies = record.step, self.replies + 1
            case wire.Fault():
                self._fault(record.where, record.error)

    def _applied(self, reply: wire.KnobReply) -> None:
        if reply.error:  # then the knobs before stay in force, and the revision never gets a step
            self._fault("knobs", f"revision {reply.revision} was refused: {reply.error}")
            return
        row = {"revision": reply.revision, "step": reply.step, "applied_s": reply.applied_s - self._zero}
        self._emit("knobs", [row])

    def _fault(self, where: str, error: str) -> None:
        self.fault_count += 1
        if len(self.faults) < _FAULTS:
            self.faults.append(f"{where}: {error}")

    def _flush(self) -> None:
        """Turn the steps that have come in into rows."""
        steps, self._steps = self._steps, []
        batch = [
            {
                "step": step.step,
                "request": self._name(part.request),
                "tokens": part.tokens,
                "context": part.context,
                "prefill": part.prefill,
                "emitted": part.emitted,
            }
            for step in steps
            for part in step.parts
        ]
        if len(self._names) > 100_000:
            self._names.clear()
        self._emit("steps", [self._step_row(step) for step in steps])
        self._emit("batch", batch)

    def _step_row(self, step: wire.Step) -> dict[str, Any]:
        work = step.work
        prefills = [part.tokens for part in step.parts if part.prefill]
        decodes = [part.tokens for part in step.parts if not part.prefill]
        row: dict[str, Any] = {
            "step": step.step,
            "scheduled_s": step.scheduled_s - self._zero,
            "end_s": step.end_s - self._zero,
            "prefill_tokens": sum(prefills),
            "decode_tokens": sum(decodes),
            "prefills": len(prefills),
            "decodes": len(decodes),
            "running": step.running,
            "waiting": step.waiting,
            "kv_use": step.kv_use,
            "preempted": [self._name(name) for name in step.preempted],
            "revision": step.revision,
            "schedule_us": step.schedule_us,
            "probe_us": step.probe_us + (work.probe_us if work else 0.0),
            "predicted_ms": step.predicted_ms,
        }
        if work is not None:
            row |= {
                "start_s": work.start_s - self._zero,
                "memory_before_bytes": work.before_bytes,
                "memory_peak_bytes": work.peak_bytes,
                "memory_after_bytes": work.after_bytes,
                "activation_bytes": max(0, work.peak_bytes - max(work.before_bytes, work.after_bytes)),
            }
        return row

    def _name(self, internal: str) -> str:
        """Our name of a request, from vLLM's internal id."""
        name = self._names.get(internal)
        if name is None:
            match = _INTERNAL_ID.fullmatch(internal)
            name = self._names[internal] = (match["ours"] or match["chat"]) if match else internal
        return name

    def _knob_row(self, revision: int, sent_s: float, knobs: Knobs) -> dict[str, Any]:
        return {"revision": revision, "sent_s": sent_s - self._zero} | knobs.model_dump()

    def _emit(self, table: str, rows: list[dict[str, Any]]) -> None:
        if self._sink is not None and rows:
            self._sink.rows(table, rows)
