"""The workbench's handle on the simulator's child: starts it, hands it jobs, takes what comes back."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

from workbench.children import killed_by, last_line
from workbench.engine.protocol import Progress
from workbench.errors import EngineDiedError, EngineError, EngineStartError
from workbench.i18n import marked
from workbench.simulate.job import (
    Ended,
    Failed,
    Order,
    Ready,
    Report,
    SimJob,
    frame,
    read_frame,
    report_of,
)

_START_S = 180.0
_TELL_S = 0.1
_CLOSE_S = 5.0
# One thread: vLLM's scheduler uses no more, and idle pools of torch cost memory. A fixed hash seed is not needed, since
# nothing depends on it; it only makes what could not be foreseen repeatable too.
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0", "VLLM_LOGGING_LEVEL": "ERROR", "MALLOC_ARENA_MAX": "2"}

Hear = Callable[[Report], None]


class Simulator:
    """One child process that plays jobs, one at a time; vLLM is imported in it once.

    Attributes:
        vllm: its version, once the child is up.
        startup_s: how long the child took to come up.
    """

    def __init__(self) -> None:
        self.vllm: str | None = None
        self.startup_s: float | None = None
        self._numbers = itertools.count(1)
        self._child: subprocess.Popen[bytes] | None = None
        self._errors: BinaryIO | None = None
        self._folder: str | None = None
        self._lock, self._pipe = threading.RLock(), threading.Lock()
        self._up = threading.Event()
        self._failed: str | None = None
        self._hear: tuple[int, Hear] | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Process id of the child."""
        return self._child.pid if self._child else None

    @property
    def folder(self) -> Path:
        """A folder that lives as long as the child, however that ends.

        Raises:
            EngineDiedError: it does not run.
        """
        if self._folder is None:
            raise EngineDiedError("simulator: got no child, expected one that runs; start it")
        return Path(self._folder)

    @property
    def running(self) -> bool:
        """Whether the child is up and has imported vLLM."""
        return self._up.is_set() and self._failed is None and self._child is not None and self._child.poll() is None

    def start(self, progress: Progress | None = None) -> None:
        """Start the child and wait until it has imported vLLM; one that runs stays as it is.

        Raises:
            EngineStartError: it did not come up.
        """
        with self._lock:
            if self.running:
                return
            self._discard()
            self._launch()
        begun = time.monotonic()
        while not self._up.wait(_TELL_S):
            seconds = time.monotonic() - begun
            if progress is not None:
                try:
                    progress(seconds, marked("importing vLLM's scheduler"))
                except BaseException:
                    self.close()
                    raise
            if seconds > _START_S:
                self._failed = f"not up after {_START_S:g} s; look at the machine's load"
                break
        if self._failed is not None or self._closed:
            why = self._failed or "it was stopped"
            self._discard()
            raise EngineStartError(f"simulator start: {why}")
        self.startup_s = time.monotonic() - begun

    def number(self) -> int:
        """A number that no job has yet."""
        return next(self._numbers)

    def submit(self, job: SimJob, hear: Hear) -> None:
        """Begin a job; returns at once.

        Args:
            job: with a number of :meth:`number`.
            hear: called in the reader's thread with each report of the job, of which :class:`Ended` is the last; if
                the child ends before, with an ``Ended`` that says so.

        Raises:
            EngineError: another job is played, or the child does not run.
        """
        with self._lock:
            if self._hear is not None:
                raise EngineError(
                    "simulator: got a second job, expected one at a time; wait for the first or cancel it"
                )
            if not self.running:
                raise EngineDiedError(f"simulator: got a job, expected it to run ({self._fate()}); start it again")
            self._hear = job.number, hear
        try:
            self.send(job)
        except EngineError:
            self._hear = None
            raise

    def send(self, order: Order) -> None:
        """Send an order about the job that is played.

        Raises:
            EngineDiedError: the child has ended.
        """
        data = frame(order)
        try:
            with self._pipe:
                self._child.stdin.write(data)  # type: ignore[union-attr]
                self._child.stdin.flush()  # type: ignore[union-attr]
        except (OSError, ValueError, AttributeError):  # the latter two once it is closed
            raise EngineDiedError(f"simulator: {self._fate()}, expected it to run; start it again") from None

    def close(self) -> None:
        """End the child, whatever it does."""
        self._closed = True
        self._up.set()
        with self._lock:
            self._discard()

    def _launch(self) -> None:
        self._failed, self._closed = None, False
        self._up.clear()
        self._folder = tempfile.mkdtemp(prefix="wb-sim-")
        self._errors = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115  it is closed with the child
        child = subprocess.Popen(
            # -P: a notebook's folder may hold a module called like one that the child imports.
            [sys.executable, "-P", "-m", "workbench.simulate.child", self._folder],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env={**os.environ, **ENVIRONMENT},
            start_new_session=True,
        )
        self._child = child
        threading.Thread(target=self._read, args=(child,), name="simulator", daemon=True).start()

    def _read(self, child: subprocess.Popen[bytes]) -> None:
        """Follow one child until it ends."""
        why: str | None = None
        try:
            while child.stdout is not None and (body := read_frame(child.stdout.read)) is not None:
                self._take(report_of(body))
        except Exception as error:  # noqa: BLE001  a thread's exception would be seen by nobody
            why = f"{type(error).__name__}: {error}"
        if child is self._child:
            self._failed = self._failed or why or self._fate()
            self._up.set()
            hear, self._hear = self._hear, None
            if hear is not None:
                with contextlib.suppress(Exception):
                    hear[1](Ended(hear[0], 0.0, self._failed))

    def _take(self, report: Report) -> None:
        if isinstance(report, Ready):
            self.vllm = report.vllm
            self._up.set()
        elif isinstance(report, Failed):
            self._failed = report.error
            self._up.set()
        elif self._hear is not None and self._hear[0] == report.number:
            hear = self._hear[1]
            if isinstance(report, Ended):
                self._hear = None  # before it is heard: the next job may be ordered at once
            hear(report)

    def _fate(self) -> str:
        """What is known of the end of the child."""
        child, errors = self._child, self._errors
        if child is None or self._closed:
            return "it was closed"
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(1.0)  # a pipe closes a moment before its process has ended
        killer, said = killed_by(child.returncode), ""
        with contextlib.suppress(OSError, ValueError, AttributeError):
            said = last_line(errors.fileno())[:300]  # type: ignore[union-attr]
        how = f"killed by {killer}" if killer else f"it ended with exit code {child.returncode}"
        return how + (f" ({said})" if said else "")

    def _discard(self) -> None:
        child, self._child = self._child, None
        hear, self._hear = self._hear, None
        if child is not None:
            child.kill()  # it holds nothing that would have to be put away
            with contextlib.suppress(subprocess.TimeoutExpired):  # a machine that is very busy; it ends all the same
                child.wait(_CLOSE_S)
            for pipe in (child.stdin, child.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]
        if hear is not None:
            hear[1](Ended(hear[0], 0.0, "it was closed"))
        if self._errors is not None:
            self._errors.close()
            self._errors = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None
