"""Engines that outlived their owner: finding them by their pid records, and ending them."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs

from workbench.engine.command import ENV_LABEL
from workbench.engine.probe import knob_page, wire
from workbench.json_file import read_json
from workbench.proc import boot_id, is_alive, is_same, labelled, pid_space, shared_memory

APP = "tuning-workbench"
_LOGS_KEPT = 20


def _state_folder() -> Path:
    return Path(os.environ.get("WORKBENCH_STATE") or platformdirs.user_state_dir(APP))


def records_folder() -> Path:
    """Where guards keep the pid records of running engines."""
    return _state_folder() / "engines"


def new_log(label: str) -> Path:
    """Make an engine's log, empty; the oldest logs beyond the last twenty are removed.

    Raises:
        OSError: it cannot be made.
    """
    folder = _state_folder() / "logs"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for old in sorted(folder.glob("*.log*"), key=_written)[: -_LOGS_KEPT + 1]:
        old.unlink(missing_ok=True)
    log = folder / f"{label}.log"
    log.touch(mode=0o600)
    return log


def _written(path: Path) -> float:
    """When a log was written last; one that another workbench has just removed is the oldest."""
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


@dataclass(frozen=True)
class Leftover:
    """An engine whose guard is gone, or a record that nothing stands behind any more.

    Attributes:
        label: the mark of its processes.
        pids: processes of it that still run; none for a stale record.
        folder: its socket folder.
        record: its pid record.
    """

    label: str
    pids: tuple[int, ...]
    folder: Path
    record: Path


def find_leftovers() -> list[Leftover]:
    """Engines of this user that nobody guards any more; engines in use are not among them."""
    found = []
    folder = records_folder()
    for record in sorted(folder.glob("*.json")) if folder.is_dir() else []:
        try:
            fields: dict[str, Any] = read_json(record)
            guarded = is_same(fields["guard"])
            elsewhere = fields["guard"]["boot"] == boot_id() and fields["pid_space"] != pid_space()
            label, sockets = str(fields["label"]), Path(fields["folder"])
        except OSError:  # removed by its guard at this moment, or nobody may open a file any more
            continue
        except (ValueError, KeyError, TypeError):
            record.unlink(missing_ok=True)  # a half-written record says nothing that could be acted on
            continue
        if not guarded and not elsewhere:  # another container, whose processes we cannot see, looks after its own
            found.append(Leftover(label, tuple(labelled(ENV_LABEL, label)), sockets, record))
    return found


def reap(leftover: Leftover, *, grace_s: float = 3.0) -> int:
    """End one leftover: SIGTERM, wait, SIGKILL; then remove its sockets, shared memory and record.

    Each process is looked up again by its mark right before a signal, so a pid that was used again is safe.

    Returns:
        How many processes were ended.
    """
    pids = labelled(ENV_LABEL, leftover.label)
    segments = {segment for pid in pids for segment in shared_memory(pid)}
    for signum, wait_s in ((signal.SIGTERM, grace_s), (signal.SIGKILL, 5.0)):
        for pid in labelled(ENV_LABEL, leftover.label):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signum)
        deadline = time.monotonic() + wait_s
        while any(is_alive(pid) for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.05)
    for segment in segments:
        with contextlib.suppress(OSError):
            Path(segment).unlink()
    _remove_folder(leftover.folder)
    leftover.record.unlink(missing_ok=True)
    return len(pids)


def _remove_folder(folder: Path) -> None:
    """Remove an engine's folder by what belongs there, so that a record which names another one does no harm."""
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            if entry.is_socket() or entry.name in (knob_page.NAME, wire.HELLO):
                entry.unlink()
        folder.rmdir()
