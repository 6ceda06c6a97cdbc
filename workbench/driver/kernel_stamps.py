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
_MOST_S = 60.0  # an older stamp says that the wall clock was set in between, not that a packet waited

Deliver = Callable[[float, bytes], None]


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
            # The note is of the wall clock; how old it is holds for any clock.
            age_s = (time.time_ns() - seconds * 1_000_000_000 - nanoseconds) * 1e-9
            if 0.0 < age_s < _MOST_S:
                now -= age_s
        self._deliver(now, bytes(_VIEW[:size]))


def can_stamp(transport: asyncio.BaseTransport) -> bool:
    """Whether the kernel's stamps can be had: on Linux, where the bytes of the socket are those of the stream."""
    return sys.platform == "linux" and transport.get_extra_info("sslcontext") is None
