"""Reading /proc: who a process is, who its descendants are, which shared memory it holds. Standard library only."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TypedDict

_PROC = Path("/proc")
_SEGMENT = re.compile(rb"(/dev/shm/[^\n]+?)(?: \(deleted\))?\n")


class Identity(TypedDict):
    """A process for good: a pid alone is used again by the kernel."""

    pid: int
    started: int  # clock ticks after boot, field 22 of /proc/PID/stat
    boot: str


def boot_id() -> str:
    """The kernel's id of this boot; empty where it does not say."""
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def pid_space() -> str:
    """The namespace in which our pids count: another container on the same boot has one of its own."""
    try:
        return str((_PROC / "self/ns/pid").readlink())
    except OSError:
        return ""


def started(pid: int) -> int | None:
    """Start time of a running process in clock ticks after boot; none when it is gone or a zombie."""
    stat = _stat(pid)
    return int(stat[19]) if stat and stat[0] not in "ZXx" else None


def identity(pid: int) -> Identity:
    """Identity of a running process; started is 0 when there is none."""
    return {"pid": pid, "started": started(pid) or 0, "boot": boot_id()}


def is_same(who: Identity) -> bool:
    """Whether the process that ``who`` was taken of still runs (a zombie does not)."""
    return who["boot"] == boot_id() and started(who["pid"]) == who["started"]


def is_alive(pid: int) -> bool:
    """Whether a process runs under this pid; a zombie does not."""
    return started(pid) is not None


def state(pid: int) -> str:
    """State letter of a process, as proc(5) has it (T: stopped by a signal, t: by a debugger); empty if it is gone."""
    stat = _stat(pid)
    return stat[0] if stat else ""


def cpu_seconds(pids: Iterable[int]) -> float:
    """Processor time that processes have used so far, in all; one that has ended adds nothing."""
    ticks = sum(int(stat[11]) + int(stat[12]) for pid in pids if (stat := _stat(pid)))  # utime and stime, proc(5)
    return ticks / os.sysconf("SC_CLK_TCK")


def descendants(pid: int, *, zombies: bool = False) -> list[int]:
    """Pids of all processes below ``pid``, parents before children.

    Args:
        pid: where to start; it is not in the result.
        zombies: also those that have ended and were not yet waited for.
    """
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (stat := _stat(int(entry.name))):
            if stat[0] == "Z" and not zombies:
                continue
            children.setdefault(int(stat[1]), []).append(int(entry.name))
    found = list(children.get(pid, []))
    for parent in found:
        found += children.get(parent, [])
    return found


def in_session(leader: int) -> list[int]:
    """Pids of the running processes of a session, in order; none for a leader of 0, which is the kernel's or init's."""
    pids = [int(entry.name) for entry in _PROC.iterdir() if entry.name.isdigit()] if leader > 0 else []
    return sorted(pid for pid in pids if (stat := _stat(pid)) and stat[0] not in "ZXx" and int(stat[3]) == leader)


def labelled(name: str, value: str) -> list[int]:
    """Pids of all processes that were started with ``name=value`` in their environment."""
    mark = f"{name}={value}".encode()
    found = []
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:  # gone, or somebody else's
                continue
            if mark in environment.split(b"\0") and is_alive(int(entry.name)):
                found.append(int(entry.name))
    return found


def shared_memory(pid: int) -> set[str]:
    """Paths below /dev/shm that the process has mapped."""
    try:
        maps = (_PROC / str(pid) / "maps").read_bytes()
    except OSError:
        return set()
    return {match.group(1).decode(errors="replace") for match in _SEGMENT.finditer(maps)}


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on (index 0: state, 1: parent, 19: start time); empty if gone."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()
