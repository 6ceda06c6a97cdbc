"""Guard: a small process between the workbench and one engine, so that the engine never outlives its owner.

Run as ``python -m workbench.engine.guard``; standard library only, since it lives as long as the engine does.
It reads one JSON line (:class:`Order` as a dict) and then ``stop`` or ``mark`` lines from stdin, starts the
engine in a session of its own, copies the engine's output into a bounded log, and writes JSON events to stdout.
It ends the whole engine when told to, when stdin closes, when the owner dies (kill -9 included), or when the
engine's first process exits: killing only the API server would leave EngineCore behind.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn, TypedDict

from workbench.engine.bounded_log import BoundedLog
from workbench.proc import Identity, descendants, identity, is_alive, is_same, pid_space, shared_memory
from workbench.redact import secrets_of

_PR_SET_CHILD_SUBREAPER = 36  # prctl(2): orphans of the engine become our children, not init's
_CHECK_S = 0.1  # between two looks at owner and engine; pidfd_open is refused in some containers
_DRAIN_READS = 64  # of 64 KiB: an engine that writes without end must not keep us from ending it


class Order(TypedDict):
    """What the guard is asked to run."""

    argv: list[str]
    env: dict[str, str]
    owner: int  # pid that must stay alive
    folder: str  # socket folder, removed at the end
    log: str
    record: str  # pid record, removed at the end
    label: str  # unique mark in the engine's environment
    grace_s: float  # between SIGTERM and SIGKILL


class Guard:
    """Runs one order to its end."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._owner = identity(order["owner"])
        self._segments: set[str] = set()
        self._ready = False

    def run(self) -> int:
        """Start the engine, watch it, end it; return its exit status (negative: signal)."""
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self._write_record(None)  # before the start: there is no moment in which an engine has no record
        try:
            secrets = secrets_of(self._order["argv"], self._order["env"])
            self._log = BoundedLog(Path(self._order["log"]), secrets)
            self._engine = subprocess.Popen(
                self._order["argv"],
                env=self._order["env"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            _say(event="failed", error=str(error))
            self._clean()
            return 1
        try:
            self._write_record(identity(self._engine.pid))
            _say(event="started", pid=self._engine.pid)
            self._watch()
        finally:  # whatever happens to us, the engine ends first
            _say(event="ending")
            code = self._end()
            self._clean()
            _say(event="exited", code=code)
        return code

    def _write_record(self, engine: Identity | None) -> None:
        record = Path(self._order["record"])
        fields = {
            "label": self._order["label"],
            "engine": engine,
            "guard": identity(os.getpid()),
            "owner": self._owner,
            "pid_space": pid_space(),
            "folder": self._order["folder"],
            "log": self._order["log"],
        }
        with contextlib.suppress(OSError):
            record.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            temporary = record.with_suffix(".tmp")
            temporary.write_text(json.dumps(fields))
            temporary.replace(record)

    def _watch(self) -> None:
        """Copy output until there is a reason to end."""
        output = self._engine.stdout
        if output is None:  # only for the type checker: it is a pipe
            return
        with selectors.DefaultSelector() as selector:
            selector.register(0, selectors.EVENT_READ, "order")
            selector.register(output, selectors.EVENT_READ, "output")
            noted = 0.0
            while self._engine.poll() is None and is_same(self._owner):
                if not self._ready and time.monotonic() > noted + 1.0:  # an engine may also die on its way up
                    self._note_members()
                    noted = time.monotonic()
                ready = {key.data for key, _ in selector.select(_CHECK_S)}
                if "output" in ready:
                    data = os.read(output.fileno(), 1 << 16)
                    if data:
                        self._log.write(data)
                    else:
                        selector.unregister(output)
                if "order" in ready and not self._obey(os.read(0, 4096)):
                    return

    def _obey(self, order: bytes) -> bool:
        """Follow what the owner wrote; false ends the engine."""
        if b"mark" in order:  # the engine is ready: remember its shared memory, should it be killed later
            self._ready = True
            self._note_members()
        return bool(order) and b"stop" not in order

    def _note_members(self) -> None:
        for pid in self._members():
            self._segments |= shared_memory(pid)

    def _end(self) -> int:
        """SIGTERM to the API server, then to everybody, then SIGKILL, with a wait after each."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        self._note_members()
        if self._engine.poll() is None:  # it ends its own children in order, if it is let
            self._signal([self._engine.pid], signal.SIGTERM)
            self._wait_while(lambda: self._engine.poll() is None, self._order["grace_s"])
            if self._engine.poll() is not None:  # its children may be on their way out too
                self._wait_while(self._members, 1.0)
        self._signal(self._members(), signal.SIGTERM)
        self._wait_while(self._members, 1.0)
        self._signal(self._members(), signal.SIGKILL)
        self._wait_while(self._members, 5.0)
        self._drain()
        self._log.close()
        return self._engine.wait()

    def _signal(self, pids: list[int], signum: int) -> None:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signum)

    def _members(self) -> list[int]:
        return descendants(os.getpid())

    def _wait_while(self, condition: Callable[[], object], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while condition() and time.monotonic() < deadline:
            self._drain()
            self._reap()
            time.sleep(0.02)

    def _drain(self) -> None:
        """Take what is left in the pipe, so that the last words of a dying engine reach the log."""
        output = self._engine.stdout
        if output is None:
            return
        os.set_blocking(output.fileno(), False)
        with contextlib.suppress(BlockingIOError, OSError):
            for _ in range(_DRAIN_READS):
                data = os.read(output.fileno(), 1 << 16)
                if not data:
                    return
                self._log.write(data)

    def _reap(self) -> None:
        """Collect zombies that were handed to us, and the engine's own exit status."""
        self._engine.poll()
        for pid in descendants(os.getpid(), zombies=True):
            if pid != self._engine.pid:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)

    def _clean(self) -> None:
        for segment in self._segments:
            with contextlib.suppress(OSError):
                Path(segment).unlink()
        shutil.rmtree(self._order["folder"], ignore_errors=True)
        with contextlib.suppress(OSError):
            Path(self._order["record"]).unlink()


def _say(**event: Any) -> None:
    with contextlib.suppress(OSError):  # the owner may be gone
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()


def _leave(signum: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + signum)


def main() -> int:
    """Entry point of the guard process."""
    for signum in (signal.SIGINT, signal.SIGHUP):  # caught and not ignored: the engine would inherit that
        signal.signal(signum, lambda _signum, _frame: None)
    signal.signal(signal.SIGTERM, _leave)
    line = b""
    while not line.endswith(b"\n"):  # not sys.stdin: its buffer would swallow later orders
        part = os.read(0, 1)
        if not part:
            return 1
        line += part
    order: Order = json.loads(line)
    if not is_alive(order["owner"]):
        return 1
    return 0 if Guard(order).run() == 0 else 1


if __name__ == "__main__":
    raise SystemExit(main())
