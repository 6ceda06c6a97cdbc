"""Our end of the probe's sockets: records become rows of the trace, knobs go out."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import zmq

from workbench.config import Knobs
from workbench.engine.probe import wire
from workbench.trace import Sink

# vLLM makes "cmpl-<ours>-<prompt index>-<8 random characters>" of the id that we send.
_INTERNAL_ID = re.compile(r"^(?:cmpl-|chatcmpl-)?(?P<ours>.+?)(?:-\d+)?-[0-9a-zA-Z]{8}$")
_POLL_MS = 50
_QUIET_S = 0.12  # without a step after which a run's last one is taken to be in
_SEND_MS = 2000  # a scheduler that has just been built may still be connecting
_LATE_S = 1.0  # how long a step waits for its worker's record


class Collector:
    """Receives records in a thread and hands rows to the sink of the run that is going on.

    Args:
        folder: the engine's 0700 socket folder.
    """

    def __init__(self, folder: Path) -> None:
        self._records: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PULL)
        self._knobs: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PUSH)
        self._records.set(zmq.RCVHWM, 0)
        self._knobs.set(zmq.LINGER, 0)
        self._knobs.set(zmq.SNDTIMEO, _SEND_MS)
        self._records.bind(wire.endpoint(folder, wire.RECORDS))
        self._knobs.bind(wire.endpoint(folder, wire.KNOBS))
        self._decoder = msgspec.msgpack.Decoder(wire.Record)
        self._encoder = msgspec.msgpack.Encoder()
        self._lock = threading.Lock()
        self._sink: Sink | None = None
        self._zero = 0.0
        self._steps: dict[int, wire.Step] = {}
        self._works: dict[int, wire.Work] = {}
        self._names: dict[str, str] = {}
        self._unapplied: list[tuple[int, float, Knobs]] = []
        self.scheduler: wire.SchedulerHello | None = None
        self.workers: dict[int, wire.WorkerHello] = {}
        self.faults: list[str] = []
        self.dropped = 0
        self.refused: dict[int, str] = {}
        self.last_step_s = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="probe-collector", daemon=True)
        self._thread.start()

    def send_knobs(self, revision: int, knobs: Knobs) -> None:
        """Send knobs to the scheduler; they act on its next step.

        Raises:
            zmq.Again: no scheduler has connected.
        """
        change = wire.KnobChange(
            revision=revision,
            budget=knobs.budget,
            chunk=knobs.chunk,
            max_running=knobs.max_running,
            policy=knobs.policy,
            prefill_every=knobs.prefill_every,
        )
        with self._lock:
            self._knobs.send(self._encoder.encode(change))
            self._unapplied.append((revision, time.monotonic(), knobs))
            self._emit("knobs", [self._knob_row(*self._unapplied[-1])])

    @contextmanager
    def into(self, sink: Sink, zero: float, revision: int, knobs: Knobs) -> Iterator[None]:
        """Hand rows to ``sink`` inside the block; ``revision`` and ``knobs`` are those in force at its start."""
        with self._lock:
            self._sink, self._zero = sink, zero
            sink.rows("knobs", [self._knob_row(revision, zero, knobs) | {"applied_s": 0.0}])
        try:
            yield
        finally:
            self._settle()
            with self._lock:
                self._flush(late=True)
                self._sink = None

    def close(self) -> None:
        """Stop receiving and free the sockets."""
        self._stop.set()
        self._thread.join(5.0)
        self._records.close(0)
        self._knobs.close(0)

    def _settle(self) -> None:
        """Wait until the records of the last steps are in: an engine at rest sends nothing for a while."""
        begun = time.monotonic()
        while (now := time.monotonic()) < begun + _LATE_S:
            if now - max(begun, self.last_step_s) > _QUIET_S and not self._steps:
                return
            time.sleep(0.01)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._records.poll(_POLL_MS)  # then flush in any case: a step may be waiting for a record that never comes
            with self._lock:
                try:
                    while True:
                        self._take(self._decoder.decode(self._records.recv(zmq.NOBLOCK)))
                except zmq.Again:
                    pass
                except (msgspec.DecodeError, zmq.ZMQError) as error:
                    self.faults.append(f"collector: {error}")
                self._flush()

    def _take(self, record: wire.Record) -> None:
        match record:
            case wire.Step():
                self.last_step_s = time.monotonic()
                self.dropped = max(self.dropped, record.dropped)
                self._steps[record.step] = record
            case wire.Work():
                if record.rank == 0:
                    self._works[record.step] = record
            case wire.SchedulerHello():
                self.scheduler = record
            case wire.WorkerHello():
                self.workers[record.rank] = record
            case wire.KnobReply():
                self._applied(record)
            case wire.Fault():
                self.faults.append(f"{record.where}: {record.error}")

    def _applied(self, reply: wire.KnobReply) -> None:
        if reply.error:
            self.refused[reply.revision] = reply.error
        # The scheduler drains its queue and applies the newest, so the older ones never ran.
        self._unapplied = [one for one in self._unapplied if one[0] > reply.revision]
        row = {"revision": reply.revision, "step": reply.step, "applied_s": reply.applied_s - self._zero}
        self._emit("knobs", [row])

    def _flush(self, *, late: bool = False) -> None:
        """Turn the steps whose worker has reported (or never will) into rows."""
        now = time.monotonic()
        ready = [n for n, step in self._steps.items() if late or n in self._works or now - step.end_s > _LATE_S]
        if not ready:
            return
        steps, batch = [], []
        for number in ready:
            step, work = self._steps.pop(number), self._works.pop(number, None)
            if step.end_s < self._zero:
                continue
            steps.append(self._step_row(step, work))
            batch += [
                {
                    "step": number,
                    "request": self._name(part.request),
                    "tokens": part.tokens,
                    "context": part.context,
                    "prefill": part.prefill,
                    "emitted": part.emitted,
                }
                for part in step.parts
            ]
        newest = max(ready)
        self._works = {n: work for n, work in self._works.items() if n > newest - 1000}
        if len(self._names) > 100_000:
            self._names.clear()
        self._emit("steps", steps)
        self._emit("batch", batch)

    def _step_row(self, step: wire.Step, work: wire.Work | None) -> dict[str, Any]:
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
            match = _INTERNAL_ID.match(internal)
            name = self._names[internal] = match["ours"] if match else internal
        return name

    def _knob_row(self, revision: int, sent_s: float, knobs: Knobs) -> dict[str, Any]:
        return {"revision": revision, "sent_s": sent_s - self._zero} | knobs.model_dump()

    def _emit(self, table: str, rows: list[dict[str, Any]]) -> None:
        if self._sink is not None and rows:
            self._sink.rows(table, rows)
