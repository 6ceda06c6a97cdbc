"""The sampler: a thread that reads memory sources at up to 100 Hz and hands rows of the ``memory`` table to a sink.

It does not drift: tick k is due at start + k × period. A tick that is late by a period or more is skipped and counted;
there is never a burst. The thread prints nothing and never ends in silence: whatever goes wrong is kept in ``errors``.
"""

from __future__ import annotations

import atexit
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from workbench.errors import InputError, WorkbenchError
from workbench.telemetry.reading import Every, Reading, Source

if TYPE_CHECKING:
    from workbench.trace import Sink

MAX_HZ = 100.0
REPEAT_NA_S = 1.0  # a missing value is written when it begins, when its reason changes, and this often
_MOST_ERRORS = 50


@dataclass(frozen=True)
class SamplerError:
    """Something that went wrong in the thread.

    Attributes:
        where: name of the source, ``sink`` or ``thread``.
        text: the exception in one line.
        first_s: when it was first met, in seconds from the run's zero.
        count: how often.
    """

    where: str
    text: str
    first_s: float
    count: int


@dataclass(frozen=True)
class SamplerStats:
    """How the sampling went: ticks done and skipped, rows handed over and lost, time spent in ticks."""

    ticks: int
    missed: int
    rows: int
    lost_rows: int
    busy_s: float


class Sampler:
    """Reads sources in a thread of its own.

    Args:
        sources: what to read; wrap a slow one in :class:`~workbench.telemetry.reading.Every`.
        sink: where the rows go, in batches.
        zero: the run's zero on ``time.monotonic()``.
        hz: ticks a second, at most 100.
        flush_s: how often rows are handed over.
        clock: seconds on the clock of ``zero``.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        sink: Sink,
        *,
        zero: float,
        hz: float = MAX_HZ,
        flush_s: float = 0.1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not 0 < hz <= MAX_HZ:
            raise InputError("hz", hz, f"more than 0 and at most {MAX_HZ:.0f}", "choose 100 or less")
        names = [source.name for source in sources]
        if len(set(names)) < len(names):
            raise InputError("sources", ", ".join(names), "different names", "rename one of them")
        self._sources, self._sink, self._zero, self._flush_s, self._clock = tuple(sources), sink, zero, flush_s, clock
        self._period = 1.0 / hz
        self._guard = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._errors: dict[tuple[str, str], SamplerError] = {}
        self._ticks = self._missed = self._rows = self._lost = 0
        self._busy_s = 0.0
        self._in: str | None = None  # the source that is being read
        self._batch: list[dict[str, Any]] = []
        self._shown_na: dict[str, tuple[str | None, float]] = {}
        self._due: dict[str, int] = {}

    def start(self) -> None:
        """Start the thread; does nothing when it runs."""
        with self._guard:
            if self._thread is not None and self._thread.is_alive():
                if not self._stop.is_set():
                    return
                raise WorkbenchError(
                    f"sampler: got a start while the last thread still reads {self._in!r}, expected it to have ended; "
                    "wait until the source answers"
                )
            self._stop = threading.Event()
            self._shown_na.clear()
            self._due.clear()
            self._thread = threading.Thread(target=self._run, args=(self._stop,), name="workbench-sampler", daemon=True)
            self._thread.start()
            atexit.register(self.stop)

    def stop(self, timeout: float = 5.0) -> bool:
        """End the thread and hand over its last rows; does nothing when it does not run.

        Returns:
            Whether the thread has ended; it has not when a source hangs, which ``errors`` then names.
        """
        thread = self._thread
        if thread is None or not thread.is_alive():
            return True
        self._stop.set()
        if thread is threading.current_thread():  # the sink stops us: the thread ends after this tick
            return False
        thread.join(timeout)
        if thread.is_alive():
            self._note("thread", f"did not stop within {timeout:g} s: {self._in!r} hangs")
            return False
        atexit.unregister(self.stop)
        return True

    def __enter__(self) -> Sampler:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def running(self) -> bool:
        """Whether the thread lives."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def errors(self) -> tuple[SamplerError, ...]:
        """What went wrong, each kind once."""
        return tuple(self._errors.copy().values())

    @property
    def stats(self) -> SamplerStats:
        """How it goes."""
        return SamplerStats(self._ticks, self._missed, self._rows, self._lost, self._busy_s)

    def _run(self, stop: threading.Event) -> None:
        try:
            self._loop(stop)
        except BaseException as error:  # noqa: BLE001 - a thread has nobody to raise to: the error is kept and shown
            self._note("thread", _line(error))
        finally:
            self._flush()

    def _loop(self, stop: threading.Event) -> None:
        start = flushed = self._clock()
        tick = 0
        while True:
            wait = start + tick * self._period - self._clock()
            if (wait > 0 and stop.wait(wait)) or stop.is_set():
                return
            began = self._clock()
            self._tick(tick)
            now = self._clock()
            if now - flushed >= self._flush_s:
                self._flush()
                flushed = now
                now = self._clock()
            self._ticks += 1
            self._busy_s += now - began
            following = max(tick + 1, math.floor((now - start) / self._period) + 1)
            self._missed += following - tick - 1
            tick = following

    def _tick(self, tick: int) -> None:
        for source in self._sources:
            if isinstance(source, Every):
                if tick < self._due.get(source.name, 0):
                    continue
                each = max(1, round(source.seconds / self._period))
                self._due[source.name] = (tick // each + 1) * each
            name = self._in = source.name
            now = self._clock() - self._zero
            try:
                reading = source.read()
            except Exception as error:  # noqa: BLE001 - a source that fails is a missing value with its reason
                self._note(name, _line(error))
                reading = Reading.missing(_line(error))
            self._in = None
            if self._is_news(name, reading, now):
                self._batch.append({"t_s": now, "source": name, "bytes": reading.bytes, "note": reading.note})

    def _is_news(self, name: str, reading: Reading, now: float) -> bool:
        if reading.bytes is not None:
            self._shown_na.pop(name, None)
            return True
        note, shown = self._shown_na.get(name, (None, -math.inf))
        if note == reading.note and now - shown < REPEAT_NA_S:
            return False
        self._shown_na[name] = (reading.note, now)
        return True

    def _flush(self) -> None:
        rows, self._batch = self._batch, []
        if not rows:
            return
        try:
            self._sink.rows("memory", rows)
        except Exception as error:  # noqa: BLE001 - sampling goes on; the lost rows are counted
            self._note("sink", _line(error))
            self._lost += len(rows)
        else:
            self._rows += len(rows)

    def _note(self, where: str, text: str) -> None:
        known = self._errors.get((where, text))
        if known is not None:
            self._errors[where, text] = SamplerError(where, text, known.first_s, known.count + 1)
        elif len(self._errors) < _MOST_ERRORS:
            self._errors[where, text] = SamplerError(where, text, self._clock() - self._zero, 1)


def _line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]
