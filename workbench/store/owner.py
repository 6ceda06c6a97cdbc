"""Who writes a run: a process, told apart from a later one that got the same pid.

The record is pid, start time and boot id. Where those cannot decide (the run was written in another container or on
another machine) the lock that a writer holds on its folder does.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from workbench.proc import boot_id, pid_space, started

_live: set[Path] = set()  # folders that this very process writes


def this_process() -> dict[str, Any]:
    """Return the record of the calling process, as plain data for ``run.json``."""
    pid = os.getpid()
    return {"pid": pid, "start": started(pid), "boot": boot_id(), "pid_space": pid_space()}


def claim(folder: Path) -> int | None:
    """Mark ``folder`` as being written by this process; return the lock to hand to :func:`release`.

    None where the file system has no locks.

    Raises:
        BlockingIOError: another process writes or converts the run.
    """
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise
    except OSError:
        os.close(fd)
        _live.add(folder.resolve())
        return None
    _live.add(folder.resolve())
    return fd


def release(folder: Path, lock: int | None) -> None:
    """Undo :func:`claim`."""
    _live.discard(folder.resolve())
    if lock is not None:
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_UN)  # also frees it in forked children
        os.close(lock)


@contextmanager
def locked(folder: Path) -> Iterator[bool]:
    """Hold the folder's lock if nobody else does; yields whether it is held."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield False
        return
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            held = True
        except OSError:
            held = False
        yield held
    finally:
        os.close(fd)


def is_alive(folder: Path, owner: Mapping[str, Any]) -> bool:
    """Whether the process in the record ``owner`` still runs and still writes ``folder``."""
    pid, start = owner.get("pid"), owner.get("start")
    if not isinstance(pid, int) or owner.get("boot") != boot_id() or owner.get("pid_space") != pid_space():
        with locked(folder) as free:
            return not free
    if pid == os.getpid() and start == started(pid):
        return folder.resolve() in _live
    found = started(pid)
    return found is not None and found == start
