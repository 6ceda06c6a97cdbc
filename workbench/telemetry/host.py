"""Host memory: what the engine's processes hold, what is available, and what the cgroup allows.

Files that are read at every tick stay open and are read anew from their start, which costs a tenth of opening them.
An open ``/proc/<pid>/statm`` also stays with its process, so that a pid that is used again is never taken for it.
"""

from __future__ import annotations

import os
import re
import time
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from workbench.proc import in_session
from workbench.telemetry.cgroup import Cgroup
from workbench.telemetry.reading import Reading

PROC = Path("/proc")
_PAGE = os.sysconf("SC_PAGE_SIZE")

Pids = Iterable[int] | Callable[[], Iterable[int]]


class Session:
    """The pids of a session, looked up again every ``refresh_s``: workers come and go, and a look costs milliseconds.

    Args:
        session: pid of the session's leader.
        refresh_s: how long a list is used.
        clock: seconds.
    """

    def __init__(self, session: int, refresh_s: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._session, self._refresh_s, self._clock = session, refresh_s, clock
        self._pids: list[int] = []
        self._until = float("-inf")

    def __call__(self) -> list[int]:
        """Return the pids."""
        now = self._clock()
        if now >= self._until:
            self._pids, self._until = in_session(self._session), now + self._refresh_s
        return self._pids


class _OpenFiles:
    """Files kept open under a key, closed when their owner is collected."""

    def __init__(self) -> None:
        self._fds: dict[int, int] = {}
        weakref.finalize(self, _close_all, self._fds).atexit = False  # the thread may still be reading then

    def read(self, key: int, path: Callable[[], Path]) -> bytes:
        fd = self._fds.get(key)
        if fd is None:
            fd = self._fds[key] = os.open(path(), os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(fd, 8192, 0)

    def drop(self, keys: Iterable[int]) -> None:
        for key in keys:
            fd = self._fds.pop(key, None)
            if fd is not None:
                os.close(fd)


def _close_all(fds: dict[int, int]) -> None:
    for fd in fds.values():
        os.close(fd)
    fds.clear()


class _OfProcesses:
    """Sum over processes. One that ended holds nothing; one that may not be read makes the sum n/a."""

    def __init__(self, name: str, pids: Pids, proc: Path = PROC) -> None:
        self._name, self._proc = name, proc
        self._pids = pids if callable(pids) else (lambda fixed=tuple(pids): fixed)
        self._last: list[int] = []
        self._ended: set[int] = set()

    @property
    def name(self) -> str:
        """What the line is called."""
        return self._name

    def read(self) -> Reading:
        """Sum the processes that live now."""
        pids = list(self._pids())
        if pids != self._last:
            self._forget(set(self._last).difference(pids))
            self._ended.intersection_update(pids)
            self._last = pids
        total, alive = 0, 0
        for pid in pids:
            if pid in self._ended:
                continue
            try:
                size = self._size(pid)
            except (FileNotFoundError, ProcessLookupError):
                size = None
            except PermissionError:
                return Reading.missing(f"no permission to read the memory of process {pid}")
            if size is None:
                self._ended.add(pid)
                self._forget({pid})
            else:
                total, alive = total + size, alive + 1
        if alive:
            return Reading(total)
        return Reading.missing("all of its processes have ended" if pids else "no process to read yet")

    def _size(self, pid: int) -> int | None:
        raise NotImplementedError

    def _forget(self, pids: set[int]) -> None:
        """Let go of what was kept for these processes."""


class ProcessRss(_OfProcesses):
    """Resident memory of processes, shared pages counted in each; quick enough for every tick.

    Linux keeps this count for each CPU and sums it loosely, so it may be off by some pages a CPU and process.

    Args:
        name: what the line is called.
        pids: the processes, or a function that lists them.
    """

    def __init__(self, name: str, pids: Pids, proc: Path = PROC) -> None:
        super().__init__(name, pids, proc)
        self._files = _OpenFiles()

    def _size(self, pid: int) -> int | None:
        fields = self._files.read(pid, lambda: self._proc / str(pid) / "statm").split(maxsplit=2)
        return int(fields[1]) * _PAGE if fields and fields[0] != b"0" else None  # a zombie has no pages at all

    def _forget(self, pids: set[int]) -> None:
        self._files.drop(pids)


class ProcessPss(_OfProcesses):
    """Resident memory of processes with each shared page split among its users.

    Exact and slow: the kernel walks all pages, 7 ms for a process of 100 MB, and the process waits where it maps memory
    meanwhile. Wrap it in ``Every``, and do not use it while steps are timed.
    """

    def _size(self, pid: int) -> int | None:
        found = re.search(rb"^Pss:\s+(\d+) kB", (self._proc / str(pid) / "smaps_rollup").read_bytes(), re.MULTILINE)
        return int(found.group(1)) * 1024 if found else None


class HostMemory:
    """Memory of the whole machine, from ``/proc/meminfo``.

    Args:
        name: what the line is called.
        field: ``available``, what can be had without swapping, or ``used``, the total less that.
    """

    def __init__(
        self, name: str = "host available", field: Literal["available", "used"] = "available", proc: Path = PROC
    ) -> None:
        self._name, self._field, self._path = name, field, proc / "meminfo"
        self._files = _OpenFiles()

    @property
    def name(self) -> str:
        """What the line is called."""
        return self._name

    def read(self) -> Reading:
        """Read the machine's memory."""
        text = self._files.read(0, lambda: self._path)
        available = _kib(text, b"MemAvailable:")
        if available is None:
            return Reading.missing("this kernel does not say how much memory is available")
        if self._field == "available":
            return Reading(available)
        total = _kib(text, b"MemTotal:")
        return Reading(total - available) if total is not None else Reading.missing("no MemTotal in /proc/meminfo")


def _kib(text: bytes, key: bytes) -> int | None:
    at = text.find(key)
    return None if at < 0 else int(text[at + len(key) :].split(maxsplit=1)[0]) * 1024


class CgroupMemory:
    """What a memory cgroup uses, file cache included (so it may stand at the limit without harm), or may use.

    Args:
        cgroup: where it is; None reads as n/a.
        field: ``used``, or ``limit``, the least of its own limit and those above it when it was found.
    """

    def __init__(self, cgroup: Cgroup | None, field: Literal["used", "limit"] = "used") -> None:
        self._cgroup, self._field = cgroup, field
        self._files = _OpenFiles()

    @property
    def name(self) -> str:
        """What the line is called."""
        return f"host cgroup {self._field}"

    def read(self) -> Reading:
        """Read the usage or the limit."""
        cgroup = self._cgroup
        if cgroup is None:
            return Reading.missing("no memory cgroup here")
        path = cgroup.usage if self._field == "used" else cgroup.limit_path
        if path is None:
            return Reading.missing("this cgroup has no limit")
        text = self._files.read(0, lambda: path).strip()
        return Reading.missing("this cgroup has no limit any more") if text == b"max" else Reading(int(text))
