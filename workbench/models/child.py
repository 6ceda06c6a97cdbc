"""Run one of our modules in a child process and pass its lines on.

Heavy imports stay out of the calling process, and the work stops when the caller is interrupted or dies: the child
holds one end of a pipe that closes with the caller, kill -9 included.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from workbench.children import import_path, killed_by, last_line

Progress = Callable[[str], None]


class ChildError(Exception):
    """The child failed; the text is its last useful line."""


def run(
    module: str,
    arguments: Sequence[str],
    progress: Progress,
    *,
    environment: Mapping[str, str] | None = None,
    lock: int | None = None,
) -> None:
    """Run ``python -m module arguments --guarded`` and hand each line that it prints to ``progress``.

    Args:
        module: one of our modules.
        arguments: its command line.
        progress: called in the calling thread.
        environment: changes to the environment.
        lock: a file descriptor that stays open, and with it a lock that stays held, until the child is gone.

    Raises:
        ChildError: the child ended with another code than 0.
    """
    with tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", module, *arguments, "--guarded"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={**os.environ, "PYTHONPATH": import_path(), "PYTHONUNBUFFERED": "1", **(environment or {})},
            start_new_session=True,
            pass_fds=() if lock is None else (lock,),
        )
        try:
            assert child.stdout is not None  # noqa: S101 - for the type checker
            for line in child.stdout:
                text = line.decode(errors="replace").strip()
                if text:
                    progress(text)
            code = child.wait()
        finally:
            _end(child)
        if code:
            raise ChildError(_why(errors.fileno(), code))


def _end(child: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    for pipe in (child.stdin, child.stdout):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()


def _why(errors: int, code: int) -> str:
    killer = killed_by(code)
    if killer:
        return f"ended by {killer}" + (", probably out of memory" if killer == "SIGKILL" else "")
    return last_line(errors) or f"ended with code {code}"
