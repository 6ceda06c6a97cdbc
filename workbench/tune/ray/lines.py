"""A child process that is spoken to in JSON lines, and that ends when its parent does, kill -9 included."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from workbench.children import import_path, killed_by, last_line

Message = dict[str, Any]


class LineChild:
    """``python -m module`` in a session of its own; it must end when its stdin closes.

    Args:
        module: one of ours.
        environment: complete; ``PYTHONPATH`` is added to.
    """

    def __init__(self, module: str, environment: Mapping[str, str] | None = None) -> None:
        env = dict(os.environ if environment is None else environment)
        env["PYTHONPATH"] = import_path(env)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  lives as long as the child
        self._child = subprocess.Popen(
            [sys.executable, "-P", "-m", module],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=env,
            start_new_session=True,
        )
        self._messages: queue.SimpleQueue[Message | None] = queue.SimpleQueue()
        self._ended = False
        self._listener = threading.Thread(target=self._listen, name=f"lines of {module}", daemon=True)
        self._listener.start()

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._child.pid

    def tell(self, message: Message) -> None:
        """Send one message; a child that has ended does not hear it."""
        with contextlib.suppress(OSError, ValueError):
            assert self._child.stdin is not None  # noqa: S101 - for the type checker
            self._child.stdin.write(json.dumps(message).encode() + b"\n")
            self._child.stdin.flush()

    def hear(self, timeout_s: float | None = None) -> Message | None:
        """The next message; None when the child has ended.

        Raises:
            TimeoutError: there is none yet.
        """
        if self._ended:
            return None
        try:
            message = self._messages.get(timeout=timeout_s)
        except queue.Empty:
            raise TimeoutError from None
        self._ended = message is None
        return message

    def last_words(self) -> str:
        """How it ended, with the last line that it wrote to stderr."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(2.0)  # its pipe closes a moment before
        code = self._child.poll()
        killer, said = killed_by(code), ""
        with contextlib.suppress(OSError, ValueError):
            said = last_line(self._errors.fileno())[:300]
        return (f"killed by {killer}" if killer else f"exit code {code}") + (f" ({said})" if said else "")

    def close(self, timeout_s: float) -> None:
        """Close its stdin and wait for its end; kill it, and what shares its session, if it takes longer."""
        if self._child.stdin is not None:
            with contextlib.suppress(OSError):
                self._child.stdin.close()
        try:
            self._child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._child.pid, signal.SIGKILL)
            self._child.wait()
        self._listener.join(2.0)  # longer only where a grandchild holds the pipe
        if self._child.stdout is not None and not self._listener.is_alive():
            self._child.stdout.close()
        self._errors.close()

    def _listen(self) -> None:
        for line in self._child.stdout or ():
            with contextlib.suppress(ValueError):
                message = json.loads(line)
                if isinstance(message, dict):
                    self._messages.put(message)
        self._messages.put(None)


def speak() -> TextIO:
    """The child's way to its parent: what was stdout. From now on a ``print`` of a library goes to stderr."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)
    return out


def say(out: TextIO, message: Message) -> None:
    """Send one message; with the parent gone there is nobody to hear it."""
    with contextlib.suppress(OSError, ValueError):
        out.write(json.dumps(message) + "\n")
        out.flush()


def orders() -> Iterator[Message]:
    """What the parent tells, until it ends or closes the pipe."""
    buffer = b""
    while True:
        data = os.read(0, 1 << 16)  # not sys.stdin, whose lock would keep the interpreter from ending
        if not data:
            return
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            yield json.loads(line)
