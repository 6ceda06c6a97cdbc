"""Resident high-water mark of this process, resettable: the peak of one step on CPU.

Writing 5 to ``/proc/self/clear_refs`` resets VmHWM to the present RSS (proc(5)); ``/proc/self/status`` shows
both, in kB. The engine is started with a low malloc mmap threshold, since glibc would otherwise keep freed
memory and the line would be flat.
"""

from __future__ import annotations

import os


class ResidentPeak:
    """Measures this process. Costs about 10 µs a step: both files stay open.

    Raises:
        OSError: the kernel does not offer one of the two files.
    """

    def __init__(self) -> None:
        self._reset = os.open("/proc/self/clear_refs", os.O_WRONLY)
        self._status = os.open("/proc/self/status", os.O_RDONLY)
        self._statm = os.open("/proc/self/statm", os.O_RDONLY)
        self._page = os.sysconf("SC_PAGE_SIZE")

    def begin(self) -> int:
        """Reset the peak; return resident bytes now."""
        os.pwrite(self._reset, b"5", 0)
        return int(os.pread(self._statm, 128, 0).split()[1]) * self._page

    def end(self) -> tuple[int, int, int]:
        """Return peak and present resident bytes; nothing is reserved on CPU."""
        status = os.pread(self._status, 4096, 0)
        return _kib(status, b"VmHWM:"), _kib(status, b"VmRSS:"), 0


def _kib(status: bytes, key: bytes) -> int:
    at = status.index(key) + len(key)
    return int(status[at : status.index(b"kB", at)]) * 1024
