"""A run that goes on: one workload on one engine, recorded from its first request to its last."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from workbench.config import SLO
from workbench.engine.protocol import Engine, Playing
from workbench.errors import EngineError, WorkbenchError
from workbench.origin import origin_words
from workbench.recorded_run import RecordedRun
from workbench.store import RunWriter
from workbench.store.writer import EndStatus
from workbench.tail import Tail
from workbench.telemetry import Sampler, Source
from workbench.workload.request import Request, Workload

__all__ = ["Change", "RecordedRun", "Run"]

_SAMPLES_HZ = 20.0  # host and device memory; the peaks of steps come from the probe, at every step


@dataclass(frozen=True)
class Change:
    """Something to do to the engine while the run goes on; requests planned for that time or later come after it.

    Attributes:
        at_s: when, in seconds from the run's zero.
        do: what; an error of it ends up in the run.
    """

    at_s: float
    do: Callable[[], object]


class Run(RecordedRun):
    """A run that is going on; after :meth:`wait` it is a recorded one.

    Args:
        engine: a ready engine.
        workload: what to play.
        folder: where it is recorded.
        meta: metadata known at the start.
        sources: memory to sample meanwhile.
        changes: what to do to the engine meanwhile.

    Raises:
        EngineError: the engine is not ready or is busy.
        StoreError: the folder cannot be written.
    """

    def __init__(
        self,
        engine: Engine,
        workload: Workload,
        folder: Path,
        meta: Mapping[str, Any],
        sources: Sequence[Source] = (),
        changes: Sequence[Change] = (),
    ) -> None:
        super().__init__(folder)
        self.workload = workload
        self.error: WorkbenchError | None = None
        self.tail = Tail()
        self._writer = RunWriter(folder, meta)
        self._tokens, self._asked = 0, sum(request.output_tokens for request in workload.requests)
        self._cancelled = False
        self._ended: dict[str, Any] = {}  # metadata known only at the end
        self._done = threading.Event()
        self._ended_s: float | None = None
        # Before anything is sent: after a crash, what was planned is known even of requests that never ended.
        # Where a prompt goes out as text only the server can count its tokens.
        self._unknown = {} if engine.exact_prompts else {"prompt_tokens": None}
        self.rows("requests", [_planned(request) | self._unknown for request in workload.requests])
        try:
            hold_s = min((change.at_s for change in changes), default=None)
            self._playing: Playing = engine.play(workload, self, hold_s)
        except BaseException as error:
            self._writer.close("failed", str(error))
            raise
        zero = self._playing.zero
        self._sampler = Sampler(sources, self, zero=zero, hz=_SAMPLES_HZ)
        self._engine, self._begun = engine, meta
        if changes:
            threading.Thread(target=self._make, args=[changes], name=f"changes {folder.name}", daemon=True).start()
        self._sampler.start()
        threading.Thread(target=self._follow, name=f"run {folder.name}", daemon=True).start()

    def rows(self, table: str, rows: list[dict[str, Any]]) -> None:
        """Take rows of the engine: the run is the engine's sink."""
        if table == "tokens":
            self._tokens += sum(row["n"] for row in rows)
        self._writer.rows(table, rows)
        self.tail.put(table, rows)

    @property
    def slo(self) -> SLO:
        """The latency promise that the run is held against; known without a look at the disk."""
        return SLO.model_validate(self._begun.get("slo") or {})

    @property
    def scenario(self) -> str:
        """Name of what is played."""
        return str(self._begun.get("scenario") or "run")

    @property
    def label(self) -> str:
        """Where its numbers come from."""
        return str(self._begun.get("label"))

    @property
    def origin(self) -> str:
        """The same with what is known of simulated ones: the step-time model and its error, or "uncalibrated"."""
        return origin_words(self._begun)

    @property
    def elapsed_s(self) -> float:
        """Seconds since its zero, or until its end; virtual ones of a simulation."""
        return self._playing.now_s if self._ended_s is None else self._ended_s

    @property
    def engine_facts(self) -> Mapping[str, Any]:
        """What its engine says of itself; once the run has ended, what it said then."""
        known = self._ended.get("engine") or self._engine.describe()
        return {**(self._begun.get("engine") or {}), **known}

    @property
    def trouble(self) -> str:
        """What is odd with its engine just now, in a line; empty where nothing is."""
        return self._engine.trouble

    @property
    def done(self) -> bool:
        """Whether the run has ended and is on disk."""
        return self._done.is_set()

    @property
    def progress(self) -> tuple[int, int]:
        """Output tokens that have arrived, and those that were asked for."""
        return self._tokens, self._asked

    def add(self, request: Request) -> None:
        """Play one more request, now."""
        self._playing.add(request)
        self._asked += request.output_tokens
        self.rows("requests", [_planned(request) | {"planned_s": None} | self._unknown])

    def cancel(self) -> None:
        """End all requests; what was measured stays."""
        self._cancelled = True
        self._playing.cancel()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until the run has ended and is on disk; false if it has not after ``timeout_s`` seconds.

        Raises:
            EngineDiedError: the engine ended in the meantime; what was measured is on disk.
            StoreError: not everything could be written.
        """
        if not self._done.wait(timeout_s):
            return False
        if self.error is not None:
            raise self.error
        return True

    def _make(self, changes: Sequence[Change]) -> None:
        """Make the changes in their time, then let go of the requests that were to come after them."""
        with self._keeping_errors():
            try:
                for change in sorted(changes, key=lambda change: change.at_s):
                    if not self._playing.reach(change.at_s):
                        return
                    change.do()
            finally:
                self._playing.release()

    def _follow(self) -> None:
        """Wait for the play to end, then close the books."""
        with self._keeping_errors():
            self._playing.wait()
        with self._keeping_errors():
            self._ended_s = self._playing.now_s
            self._sampler.stop()
            # An engine that died says less of itself than it did at the start.
            now = {name: value for name, value in self._engine.describe().items() if value is not None}
            self._ended |= {
                "engine": {**(self._begun.get("engine") or {}), **now},
                "sampler_errors": [asdict(one) for one in self._sampler.errors],
            }
        with self._keeping_errors():
            status: EndStatus = "failed" if self.error else "cancelled" if self._cancelled else "complete"
            self._writer.close(status, str(self.error) if self.error else None, **self._ended)
        self._done.set()

    @contextmanager
    def _keeping_errors(self) -> Iterator[None]:
        """Keep the first error for :meth:`wait`: nobody would see an exception of this thread."""
        try:
            yield
        except WorkbenchError as error:
            self.error = self.error or error
        except Exception as error:  # noqa: BLE001  whatever it is
            self.error = self.error or EngineError(f"run: {type(error).__name__}: {error}")


def _planned(request: Request) -> dict[str, Any]:
    """What a request's row holds before it is sent; the engine's rows fill in the rest."""
    return {
        "request": request.request,
        "class": request.class_name,
        "priority": request.priority,
        "prompt_tokens": request.prompt_tokens,
        "max_tokens": request.output_tokens,
        "planned_s": request.arrival_s,
    }
