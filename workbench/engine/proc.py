"""Reading /proc: who a process is, who its descendants are, which shared memory it holds. Standard library only."""

from __future__ import annotations

import re
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
    """The kernel's id of this boot."""
    return (_PROC / "sys/kernel/random/boot_id").read_text().strip()


def identity(pid: int) -> Identity:
    """Identity of a running process; started is 0 when there is none."""
    stat = _stat(pid)
    return {"pid": pid, "started": int(stat[19]) if stat else 0, "boot": boot_id()}


def is_same(who: Identity) -> bool:
    """Whether the process that ``who`` was taken of still runs (a zombie does not)."""
    stat = _stat(who["pid"])
    return bool(stat) and stat[0] != "Z" and int(stat[19]) == who["started"] and who["boot"] == boot_id()


def is_alive(pid: int) -> bool:
    """Whether a process runs under this pid; a zombie does not."""
    stat = _stat(pid)
    return bool(stat) and stat[0] != "Z"


def descendants(pid: int, *, zombies: bool = False) -> list[int]:
    """Pids of all processes below ``pid``, parents before children."""
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


def labelled(name: str, value: str) -> list[int]:
    """Pids of all processes whose environment holds ``name=value``."""
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
        text = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return []
    return text[text.rindex(")") + 2 :].split()
