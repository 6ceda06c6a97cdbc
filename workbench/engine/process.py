"""The workbench's handle on one engine process: start it under a guard, follow it, stop it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.engine.guard import Order
from workbench.engine.leftovers import Leftover, reap, records_folder

_STOP_SLACK_S = 10.0  # the guard's own time beyond its grace period


@dataclass
class EngineProcess:
    """One engine under its guard.

    Args:
        argv: command of the engine.
        env: its environment, complete.
        folder: 0700 folder of its sockets; the guard removes it at the end.
        log: where its output goes.
        label: unique mark in its environment.
        grace_s: seconds between SIGTERM and SIGKILL.
    """

    argv: list[str]
    env: dict[str, str]
    folder: Path
    log: Path
    label: str
    grace_s: float = 5.0

    def __post_init__(self) -> None:
        self.pid: int | None = None
        self.exit_code: int | None = None
        self.error: str | None = None
        self._started, self._ending, self._ended = threading.Event(), threading.Event(), threading.Event()
        self._record = records_folder() / f"{self.label}.json"
        order = Order(
            argv=self.argv,
            env=self.env,
            owner=os.getpid(),
            folder=str(self.folder),
            log=str(self.log),
            record=str(self._record),
            label=self.label,
            grace_s=self.grace_s,
        )
        # A session of its own: Ctrl-C in a terminal reaches the workbench, which then stops the engine in order.
        self._guard = subprocess.Popen(
            # -P: a json.py in the folder that the notebook runs in is not the one that the guard means.
            [sys.executable, "-P", "-m", "workbench.engine.guard"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._tell(json.dumps(order))
        threading.Thread(target=self._listen, name="engine-guard", daemon=True).start()
        self._started.wait(10.0)

    @property
    def running(self) -> bool:
        """Whether the engine is up: false from the moment at which its first process has ended or was told to."""
        return not (self._ending.is_set() or self._ended.is_set())

    def mark_ready(self) -> None:
        """Let the guard note the engine's shared memory, so that it can be freed after a kill."""
        self._tell("mark")

    def stop(self) -> None:
        """End the engine and wait until nothing of it is left; a second call does nothing."""
        if not self._ended.is_set():
            self._tell("stop")
            if not self._ended.wait(self.grace_s + _STOP_SLACK_S):
                self._guard.kill()  # _listen then ends what it has left
                self._ended.wait(_STOP_SLACK_S)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._guard.wait(_STOP_SLACK_S)
        with contextlib.suppress(OSError):
            if self._guard.stdin and self._guard.stdout:
                self._guard.stdin.close()
                self._guard.stdout.close()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for the engine's end; false when it still runs after ``timeout_s`` seconds."""
        return self._ended.wait(timeout_s)

    def _tell(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # the guard is gone, or stop() has closed the pipe
            if self._guard.stdin:
                self._guard.stdin.write(line.encode() + b"\n")
                self._guard.stdin.flush()

    def _listen(self) -> None:
        for line in self._guard.stdout or ():
            event: dict[str, Any] = json.loads(line)
            if event["event"] == "started":
                self.pid = event["pid"]
            elif event["event"] == "ending":
                self._ending.set()
            elif event["event"] == "exited":
                self.exit_code = event["code"]
            else:
                self.error = event["error"]
            self._started.set()
        if self.exit_code is None and self.error is None:  # the guard was killed: nobody else would end its engine
            reap(Leftover(self.label, (), self.folder, self._record))
        self._ended.set()
        self._started.set()
