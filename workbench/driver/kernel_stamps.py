"""When a packet arrived, said by the kernel: a client that waits for a core stamps nothing late.

``SO_TIMESTAMPNS`` (socket(7)) has the kernel note when a packet reached this machine's network stack. On a connection
without TLS the bytes are read here together with that note, past the event loop's own transport, which is left with
writing. A read that takes several packets gets the stamp of the last one.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import sys
import time
from collections.abc import Callable

# Python has no name for it; asm-generic/socket.h, which x86 and Arm use.
_SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("qq")
_SPACE = socket.CMSG_SPACE(_TIMESPEC.size)
_BUFFER = bytearray(1 << 16)
_VIEW = memoryview(_BUFFER)
_MOST_S = 60.0  # no packet waits longer
_STEP_S = 0.005  # the wall clock's lead over the monotonic one changes by less, unless somebody sets it
_SLEW = 0.1  # or corrects it a little at a time: chrony's default is less (maxslewrate 83,333 ppm)
_TOGETHER_S = 0.001  # two readings of clocks lie closer, unless we had to wait for a core in between

Deliver = Callable[[float, bytes], None]


class Clock:
    """Turns the kernel's notes, which are of the wall clock, into CLOCK_MONOTONIC.

    How old a note is holds for any clock, but not if the wall clock was set after it was made. So the two clocks are
    compared at every packet, and notes from before the moment at which they were found apart are not used.
    """

    def __init__(self) -> None:
        self._lead_s = 0.0  # of the wall clock over the monotonic one
        self._looked_s, self._set_s = float("-inf"), float("-inf")

    def arrival(self, noted_ns: int) -> float:
        """CLOCK_MONOTONIC of a packet that was noted at ``noted_ns`` of the wall clock; now, if that cannot be told."""
        now, wall_ns = _both_clocks()
        lead_s = wall_ns * 1e-9 - now
        if abs(lead_s - self._lead_s) > _STEP_S + _SLEW * (now - self._looked_s):
            self._set_s = now
        self._lead_s, self._looked_s = lead_s, now
        at = now - (wall_ns - noted_ns) * 1e-9
        return at if max(self._set_s, now - _MOST_S) < at <= now else now


def _both_clocks() -> tuple[float, int]:
    """CLOCK_MONOTONIC in seconds and the wall clock in nanoseconds, read at the same moment."""
    for _ in range(3):
        now, wall_ns = time.monotonic(), time.time_ns()
        if time.monotonic() < now + _TOGETHER_S:
            break
    return now, wall_ns


_CLOCK = Clock()  # one for all connections: each shows whether it was set


class KernelReader:
    """Reads a connection in place of its transport.

    Args:
        loop: the event loop.
        transport: of the connection; it still writes, and ends the connection.
        deliver: called with CLOCK_MONOTONIC of the arrival, and the bytes.

    Raises:
        OSError: no file descriptor is left, or the kernel stamps no packets.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, deliver: Deliver) -> None:
        self.error: OSError | None = None  # what ended the connection
        self._loop, self._transport, self._deliver = loop, transport, deliver
        # A descriptor of our own: loops let nobody else read one that belongs to a transport.
        theirs = transport.get_extra_info("socket")
        self._socket = socket.fromfd(theirs.fileno(), theirs.family, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
            self._socket.setblocking(False)
            transport.pause_reading()
            loop.add_reader(self._socket.fileno(), self._read)
        except BaseException:
            self._socket.close()
            raise

    def close(self) -> None:
        """Read no more."""
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()

    def _read(self) -> None:
        try:
            size, notes, _, _ = self._socket.recvmsg_into((_BUFFER,), _SPACE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.error = error
            self.close()
            self._transport.abort()
            return
        now = time.monotonic()
        if not size:
            self.close()
            self._transport.close()
            return
        if notes:
            seconds, nanoseconds = _TIMESPEC.unpack(notes[0][2])
            now = _CLOCK.arrival(seconds * 1_000_000_000 + nanoseconds)
        self._deliver(now, bytes(_VIEW[:size]))


def can_stamp(transport: asyncio.BaseTransport) -> bool:
    """Whether the kernel's stamps can be had: on Linux, where the bytes of the socket are those of the stream."""
    return sys.platform == "linux" and transport.get_extra_info("sslcontext") is None
