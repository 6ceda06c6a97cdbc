"""A workload that is being simulated, as the workbench sees it."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from workbench.engine.probe.wire import KnobChange
from workbench.errors import EngineDiedError, EngineError, InputError, WorkbenchError
from workbench.simulate.host import Simulator
from workbench.simulate.job import Ask, Cancel, Ended, Held, Join, Report, Rows, Turn, Until
from workbench.simulate.rows import as_rows, unpacked
from workbench.trace import Sink
from workbench.workload.request import Request

_PACE_S = 0.1  # between two steps of a clock that keeps a pace: as often as charts are drawn


class SimulatedPlay:
    """A workload that is being simulated; see :class:`workbench.engine.protocol.Playing`.

    It runs as fast as the machine can, or at a pace: ``now_s`` is virtual time.

    Args:
        number: of the job.
        asks: its requests.
        simulator: that plays it.
        sink: where rows go.
        tokens: whether requests that are added need their token ids, as a prefix cache does.
        hold_s: the clock stands here until :meth:`reach` or :meth:`release`; the job must say the same.
        pace: virtual seconds that pass in one on the wall, see :meth:`keep_pace`; none is as fast as can be.

    Attributes:
        zero: CLOCK_MONOTONIC when it began; rows count from virtual zero instead.
        now_s: how far the clock is, virtual seconds.
        ended: requests that have ended.
        output_tokens: that were made.
        failed: requests that ended with an error.
        facts: what was counted beside the rows, once it is over.
        faults: errors of the probe and of policies, once it is over.
    """

    def __init__(
        self,
        number: int,
        asks: Iterable[Ask],
        simulator: Simulator,
        sink: Sink,
        *,
        tokens: bool,
        hold_s: float | None = None,
        pace: float | None = None,
    ) -> None:
        self.zero = time.monotonic()
        self.now_s = 0.0
        self.ended = self.output_tokens = self.failed = 0
        self.facts: dict[str, float] = {}
        self.faults: list[str] = []
        self.error: WorkbenchError | None = None
        self._number, self._simulator, self._sink, self._tokens = number, simulator, sink, tokens
        self._unreported = {ask.request: ask for ask in asks}
        self._names = set(self._unreported)
        self._over = False
        self._lock = threading.Lock()
        self._moved = threading.Condition()
        self._held_s: float | None = None
        self._limit_s, self._pace = hold_s, pace
        self._done = threading.Event()

    @property
    def done(self) -> bool:
        """Whether all requests have ended."""
        return self._done.is_set()

    @property
    def in_flight(self) -> int:
        """Requests that have not ended."""
        return len(self._unreported)

    def add(self, request: Request) -> None:
        """Play one more request, at the present virtual time.

        Raises:
            InputError: the play has a request of that name.
            EngineError: the play has ended; a simulation runs ahead of the clock on the wall, so that may be soon.
        """
        ask = ask_of(request, tokens=self._tokens)
        with self._lock:
            if self._over:
                raise EngineError(
                    f"add: got request {ask.request!r} after the end at {self.now_s:.1f} s of virtual time, "
                    "expected a play that goes on; start another"
                )
            if ask.request in self._names:
                raise InputError("request", ask.request, "a name that the play does not have yet", "choose another")
            self._names.add(ask.request)
            self._unreported[ask.request] = ask
            self._simulator.send(Join(self._number, ask))

    def set_knobs(self, change: KnobChange) -> None:
        """Let knobs take hold at the present virtual time."""
        if not self._over:
            self._simulator.send(Turn(self._number, change))

    def reach(self, at_s: float) -> bool:
        """Let the clock run up to ``at_s`` of virtual time and stand there; false if the play is over before.

        What is done then (knobs set, requests added) happens at that time, however long it takes on the wall. The next
        ``reach`` or :meth:`release` lets the clock go on.
        """
        if self.done:
            return False
        with self._moved:
            self._held_s, self._limit_s = None, at_s
        if self._pace is None:
            self._simulator.send(Until(self._number, at_s))
        with self._moved:
            self._moved.wait_for(lambda: self.done or (self._held_s is not None and self._held_s >= at_s))
        return not self.done

    def release(self) -> None:
        """Let the clock run to the end."""
        self._limit_s = None
        if not self.done and self._pace is None:
            self._simulator.send(Until(self._number, None))

    def keep_pace(self) -> None:
        """Let the clock follow the one on the wall, in a thread, until the play is over; its job begins held at 0."""
        threading.Thread(target=self._keep_pace, name=f"pace {self._number}", daemon=True).start()

    def _keep_pace(self) -> None:
        while not self._done.wait(_PACE_S):
            at_s = (time.monotonic() - self.zero) * (self._pace or 1.0)
            limit_s = self._limit_s
            with contextlib.suppress(EngineError):  # of a child that has ended: the play hears of it
                self._simulator.send(Until(self._number, at_s if limit_s is None else min(at_s, limit_s)))

    def cancel(self) -> None:
        """End all requests of the play; what was simulated stays."""
        if not self.done:
            self._simulator.send(Cancel(self._number))

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until all requests have ended.

        Raises:
            EngineDiedError: the child ended in the meantime, or was stopped.
            EngineError: the job could not be played to its end.
            StoreError: the rows could not be kept.
        """
        over = self._done.wait(timeout_s)
        if over and self.error is not None:
            raise self.error
        return over

    def hear(self, report: Report) -> None:
        """Take a report of the child; called in the thread that reads them."""
        if isinstance(report, Rows):
            self._take(report)
        elif isinstance(report, Held):
            with self._moved:
                self.now_s = self._held_s = report.at_s
                self._moved.notify_all()
        elif isinstance(report, Ended):
            self._end(report)

    def _take(self, report: Rows) -> None:
        self.now_s, self.ended, self.output_tokens = report.now_s, report.ended, report.tokens
        for name, data in report.tables.items():
            rows = as_rows(unpacked(data))
            if name == "requests":
                with self._lock:
                    for row in rows:
                        self._unreported.pop(row["request"], None)
                self.failed += sum(row["status"] == "error" for row in rows)
            self._put(name, rows)

    def _put(self, table: str, rows: list[dict[str, Any]]) -> None:
        try:
            if rows:
                self._sink.rows(table, rows)
        except WorkbenchError as error:  # a disk that is full, say
            self.error = self.error or error
        except Exception as error:  # noqa: BLE001  a thread's exception would be seen by nobody
            self.error = self.error or EngineError(f"simulator: {type(error).__name__}: {error}")

    def _end(self, report: Ended) -> None:
        self.now_s = max(self.now_s, report.now_s)
        self.facts, self.faults = dict(report.facts), list(report.faults)
        if report.error is not None and self.error is None:
            died = not self._simulator.running
            self.error = (EngineDiedError if died else EngineError)(f"simulator: {report.error}")
        with self._lock:
            self._over = True
            left, self._unreported = list(self._unreported.values()), {}
        why = str(self.error) if self.error else "added when the play had ended"
        self._put("requests", [_unknown(ask, why) for ask in left])
        self._done.set()
        with self._moved:
            self._moved.notify_all()


def ask_of(request: Request, *, tokens: bool) -> Ask:
    """A request as the child takes it; with the ids of its tokens only where a prefix cache looks at them."""
    return Ask(
        request.request,
        request.class_name,
        request.priority,
        request.arrival_s,
        len(request.prompt),
        request.output_tokens,
        np.asarray(request.prompt, "<i4").tobytes() if tokens else b"",
    )


def _unknown(ask: Ask, why: str) -> dict[str, Any]:
    return {
        "request": ask.request,
        "class": ask.class_name,
        "priority": ask.priority,
        "prompt_tokens": ask.prompt_tokens,
        "max_tokens": ask.output_tokens,
        "planned_s": ask.arrival_time,
        "status": "unfinished",
        "error": why,
    }
