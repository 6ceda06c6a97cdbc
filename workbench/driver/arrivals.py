"""Packets are stamped where the event loop hands them over, and HTTP is parsed later: what aiohttp does, in that order.

aiohttp decodes a packet and wakes a task before anybody could look at a clock; with 200 streams that answer at once
the last of them is then stamped milliseconds late. Here the clock is read first, and nothing else is done on the spot.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from functools import partial
from typing import Any, cast

import aiohttp
from aiohttp.client_proto import ResponseHandler

from workbench.driver.kernel_stamps import KernelReader, can_stamp

MAX_HELD_BYTES = 1 << 20  # of one answer; beyond them they are parsed on the spot
_LAST_CHUNK = b"0\r\n\r\n"  # ends a chunked body (RFC 9112, section 7.1)

Stamped = tuple[float, bytes]  # CLOCK_MONOTONIC, and what arrived then


class Arrivals:
    """The body of one answer: bytes with the time at which the packet arrived that completed them.

    Args:
        feed: takes a packet and parses its HTTP.
        payload: where the parser puts the body.
        at: when the packet with the end of the headers arrived; the body that it brought is taken at once.
    """

    def __init__(self, feed: Callable[[bytes], None], payload: aiohttp.StreamReader, at: float) -> None:
        self.over = False  # nothing more will come
        self.on_end: Callable[[], None] = _nothing  # called when it looks as if all were there: time to take
        self._feed, self._payload = feed, payload
        self._held: list[Stamped] = []  # packets as they came
        self._held_bytes = 0
        self._bodies: list[Stamped] = []
        self._eager = False
        self._decode(at)

    @property
    def whole(self) -> bool:
        """Whether the body ended as HTTP says that it should."""
        return self._payload.is_eof() and self._payload.exception() is None

    @property
    def broken(self) -> BaseException | None:
        """What cut the body short."""
        return cast("BaseException | None", self._payload.exception())

    @property
    def ended_s(self) -> float:
        """CLOCK_MONOTONIC of the packet with the end."""
        return self._at

    def hold(self, at: float, packet: bytes) -> bool:
        """Keep a packet; tells whether it should be parsed now. The hot path."""
        self._held.append((at, packet))
        self._held_bytes += len(packet)
        return (
            packet.endswith(_LAST_CHUNK)
            or len(packet) <= len(_LAST_CHUNK)
            or self._held_bytes > MAX_HELD_BYTES
            or self._eager
        )

    def take(self) -> list[Stamped]:
        """Parse what is held; return the body that has come since the last call."""
        self.parse()
        bodies, self._bodies = self._bodies, []
        return bodies

    async def read(self, most: int) -> bytes:
        """The whole of a body that is no stream, or its first ``most`` bytes and some.

        Raises:
            aiohttp.ClientPayloadError: it was cut short.
        """
        self._eager, loop, body = True, asyncio.get_running_loop(), b""
        while True:
            more = loop.create_future()
            self.on_end = partial(_tell, more)
            body += b"".join(part for _, part in self.take())
            if self.over or len(body) >= most:
                break
            await more
        if self.broken is not None:
            raise self.broken
        return body

    def parse(self) -> None:
        """Parse what is held."""
        held, self._held, self._held_bytes = self._held, [], 0
        for at, packet in held:
            self._feed(packet)
            self._decode(at)

    def _decode(self, at: float) -> None:
        self._at = at
        payload = self._payload
        if payload.exception() is None:
            while body := payload.read_nowait():  # more than once where the parser stopped at its limit
                self._bodies.append((at, body))
        self.over = payload.is_eof() or payload.exception() is not None

    def let_go(self) -> None:
        """Nobody waits any more; a connection keeps its last answer for as long as it is open."""
        self.on_end = _nothing

    def end(self) -> None:
        """The connection is gone: nothing more will come."""
        if not self.over:
            self._at, self.over = time.monotonic(), True
            self.on_end()


class StampingHandler(ResponseHandler):  # type: ignore[misc]  # mypy skips aiohttp
    """One connection; from the end of an answer's headers on, packets are only stamped and kept."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.arrivals: Arrivals | None = None  # of the answer that is coming, or of the last one
        self._receive = super().data_received
        self._reader: KernelReader | None = None
        self._stopped = False
        self._at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """There is a connection."""
        super().connection_made(transport)
        self._loop.call_soon(self._read_here)  # once the transport has begun to read

    def _read_here(self) -> None:
        transport = self.transport
        if transport is not None and not transport.is_closing() and can_stamp(transport):
            with contextlib.suppress(OSError, RuntimeError):  # the transport then goes on reading
                self._reader = KernelReader(self._loop, transport, self._arrive)

    def pause_reading(self) -> None:
        """The body has reached aiohttp's limit."""
        self._stopped = True
        super().pause_reading()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Go on; aiohttp asks for it after every chunk, and has its parser look for more each time."""
        if self._stopped:
            self._stopped = False
            super().resume_reading(resume_parser)

    def _resume_transport_reading(self) -> None:
        if self._reader is None:
            super()._resume_transport_reading()

    def data_received(self, data: bytes) -> None:
        """Stamp what the transport has read; without data it is aiohttp, whose parser goes on after a pause."""
        if data:
            self._arrive(time.monotonic(), data)
        else:
            self._receive(data)

    def _arrive(self, at: float, packet: bytes) -> None:
        arrivals = self.arrivals
        if arrivals is None or arrivals.over:
            self._at = at
            self._receive(packet)
        elif arrivals.hold(at, packet):
            self._loop.call_soon(_look, arrivals)

    def feed_data(self, data: Any, size: int = 0) -> None:
        """The headers of an answer are there."""
        self.arrivals = Arrivals(self._receive, data[1], self._at)
        super().feed_data(data, size)

    def connection_lost(self, exc: BaseException | None) -> None:
        """The connection has ended: parse what came before that."""
        arrivals, reader, self._reader = self.arrivals, self._reader, None
        if reader is not None:
            reader.close()
            exc = exc or reader.error
        if arrivals is not None:
            arrivals.parse()
        super().connection_lost(exc)
        if arrivals is not None:
            arrivals.end()


class StampedResponse(aiohttp.ClientResponse):  # type: ignore[misc]
    """An answer, with its body as :class:`Arrivals`."""

    arrivals: Arrivals

    async def start(self, connection: Any) -> StampedResponse:
        """Wait for the headers."""
        handler = connection.protocol
        await super().start(connection)
        self.arrivals = handler.arrivals  # nothing was awaited since it was made: nobody has the connection yet
        return self


class StampingConnector(aiohttp.TCPConnector):  # type: ignore[misc]
    """Connections whose packets are stamped; to be used with :class:`StampedResponse`."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self._factory = partial(StampingHandler, loop=self._loop)


def stamping_session(**connector: Any) -> aiohttp.ClientSession:
    """A session whose answers are :class:`StampedResponse`, and whose requests are told when they leave.

    Each request gives a ``trace_request_ctx`` with a method ``sent``.

    Args:
        connector: arguments of the connector.
    """
    leaving = aiohttp.TraceConfig()
    leaving.on_request_chunk_sent.append(_leave)
    return aiohttp.ClientSession(
        connector=StampingConnector(**connector),
        response_class=StampedResponse,
        read_bufsize=MAX_HELD_BYTES,  # what is held is parsed at a stretch: a lower limit would only stop the socket
        auto_decompress=False,  # a few packets could unfold into gigabytes
        timeout=aiohttp.ClientTimeout(total=None),
        trace_configs=[leaving],
    )


async def _leave(_session: Any, context: Any, _chunk: Any) -> None:
    context.trace_request_ctx.sent()


def _look(arrivals: Arrivals) -> None:
    arrivals.on_end()  # of that moment: who waits may have changed


def _nothing() -> None:
    """Nobody waits yet: who comes looks first."""


def _tell(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)
