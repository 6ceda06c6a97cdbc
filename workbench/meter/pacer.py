"""Hands packets over when they are due: one timer for all streams of the stub server."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Iterator
from itertools import count as counter
from typing import Any

from workbench.meter.scripts import Packet

_SLICE_S = 0.02  # handed over at a stretch: a server that is behind must still read requests and refill its sockets
_MOST_WAITING = 1 << 18  # bytes for a client that does not keep up, of one counted stream


class Stream:
    """One stream that is being played."""

    def __init__(self, transport: asyncio.Transport, packets: Iterator[Packet], record: dict[str, Any]) -> None:
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._transport, self._packets, self._record = transport, packets, record
        self.due = 0.0
        self._next: Packet | None = None

    def ready(self) -> bool:
        """Make the next packet ready and set when it is due; false at the end."""
        self._next = next(self._packets, None)
        if self._next is None or self.over.done():
            return False
        self.due += self._next.wait_s
        return True

    def hand_over(self) -> None:
        """Give the packet to the socket, and note when."""
        packet, transport = self._next, self._transport
        if packet is None or transport.is_closing():
            return
        data = chunked(packet.data)
        before = time.monotonic()
        transport.write(data)
        after = time.monotonic()
        if transport.get_write_buffer_size():  # the socket is full: nobody knows when the rest of it goes
            self._record["held_up"] += 1
        for n in packet.tokens:
            self._record["arrivals"].append((before, after, n))


class CountedStream(Stream):
    """A stream of a load: its tokens are counted, their times not kept, and it does not catch up when it is late."""

    _full = False  # the client has no room: the packet waits for another turn

    def ready(self) -> bool:
        """As for any stream; a packet that was not handed over is the next one again."""
        self.due = max(self.due, time.monotonic())
        if not self._full or self._next is None:
            return super().ready()
        self.due += self._next.wait_s
        return not self.over.done()

    def hand_over(self) -> None:
        """Give the packet to the socket, and count it."""
        packet, transport = self._next, self._transport
        if packet is None or transport.is_closing():
            return
        self._full = transport.get_write_buffer_size() > _MOST_WAITING
        if not self._full:
            transport.write(chunked(packet.data))
            self._record["sent"] += sum(packet.tokens)


class Pacer:
    """Hands over each stream's packets when they are due; one timer for all."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Stream]] = []
        self._order = counter()
        self._timer: asyncio.TimerHandle | None = None

    def add(self, stream: Stream, start: float) -> None:
        """Begin a stream; its first packet is due its own wait after ``start``."""
        stream.due = start
        self._push(stream)
        self._set()

    def _push(self, stream: Stream) -> None:
        if stream.ready():
            heapq.heappush(self._heap, (stream.due, next(self._order), stream))
        elif not stream.over.done():
            stream.over.set_result(None)

    def _fire(self) -> None:
        until = time.monotonic() + _SLICE_S
        while self._heap and self._heap[0][0] <= time.monotonic() < until:
            stream = heapq.heappop(self._heap)[2]
            stream.hand_over()
            self._push(stream)
        self._set()

    def _set(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(self._heap[0][0], self._fire) if self._heap else None


def chunked(data: bytes) -> bytes:
    """Bytes as one chunk of an HTTP body (RFC 9112, section 7.1)."""
    return b"%x\r\n%b\r\n" % (len(data), data)
