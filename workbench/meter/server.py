"""The stub server: ``python -m workbench.meter.server [STEADY]``. It prints its port and ends when stdin closes.

Each packet goes to the socket in one call, and CLOCK_MONOTONIC is read before and after it: the truth lies between.
A request named ``script/NAME/...`` is played that script, ``steady/COUNT/PERIOD_MS/...`` and
``lockstep/COUNT/PERIOD_MS/...`` single tokens (the latter on a beat that all streams share, as an engine's steps are),
``flood/COUNT/...`` as fast as the client takes them. ``load/COUNT/PERIOD_MS/...`` is as ``steady``, but its tokens are
only counted, so that it may go on for long, and ``/finish`` ends all of these with their next token. Any other request
is a stranger's: it gets ``max_tokens`` tokens, ``STEADY`` ms apart (20), or with 0 as fast as it takes them.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import struct
import sys
import time
from collections.abc import Iterator
from itertools import count as counter
from typing import Any

from aiohttp import web

from workbench.meter.pacer import CountedStream, Pacer, Stream, chunked
from workbench.meter.scripts import DONE, SCRIPTS, Packet, Script, closing, event, steady, steady_chat

_FLOOD_EVENTS = 50  # handed over at once: about 10 KB
_FLOOD_BYTES = 1 << 18  # that wait for a client which does not keep up
_MAX_BODY = 1 << 28
_LONGEST_S = 3600.0  # between two tokens
# What a body or a name of anything raises: any user of this machine may send one, and asks for no traceback.
_NO_REQUEST = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError)


class Stub:
    """The server.

    Args:
        period_s: between two tokens of a stranger's stream.
    """

    def __init__(self, period_s: float) -> None:
        self._period_s = period_s
        self._pacer = Pacer()
        self._told: dict[str, dict[str, Any]] = {}
        self._strangers = counter()
        self._finishing = False

    async def complete(self, request: web.Request) -> web.StreamResponse:
        """Play one request."""
        read = time.monotonic()
        try:
            body = dict(await request.json())
            name, kind = self._named(request.headers.get("X-Request-Id", ""))
            asked = name
            if kind == "stranger" and not self._period_s:
                kind, asked = "flood", f"flood/{_wanted(body)}"
            script, start = self._script(kind, asked, body, read)
        except _NO_REQUEST:
            return web.Response(status=400, text="this asks for no stream that the stub has")
        record = self._told[name] = {"read": read, "arrivals": [], "held_up": 0, "begun": None}
        if isinstance(script, Script) and script.headers_s:
            await asyncio.sleep(script.headers_s)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        transport = request.transport
        if transport is None:
            return response
        record["begun"] = time.monotonic()
        if kind == "flood":
            await self._flood(transport, int(asked.split("/")[1]), record)
        else:
            packets = iter(script.packets) if isinstance(script, Script) else script
            if kind == "load":
                record["sent"] = 0
            stream = (CountedStream if kind == "load" else Stream)(transport, packets, record)
            self._pacer.add(stream, time.monotonic() if start is None else start)
            try:
                await stream.over
            finally:
                stream.over.cancel()
        if isinstance(script, Script) and script.end != "whole":
            await asyncio.sleep(0.02)  # what was written is read before the end is seen
            if script.end == "reset":
                transport.get_extra_info("socket").setsockopt(
                    socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
                )
                transport.abort()
            transport.close()
        return response

    def _named(self, name: str) -> tuple[str, str]:
        """The name of a request and its kind; one that we did not make is a stranger's."""
        kind = name.partition("/")[0]
        if kind in ("script", "steady", "lockstep", "flood", "load"):
            return name, kind
        return f"stranger/{next(self._strangers)}", "stranger"

    def _script(
        self, kind: str, name: str, body: dict[str, Any], read: float
    ) -> tuple[Script | Iterator[Packet], float | None]:
        parts = name.split("/")
        if kind == "script":
            return SCRIPTS[parts[1]], None
        if kind == "flood":
            int(parts[1])
            return iter(()), None
        if kind == "stranger":
            usage = bool((body.get("stream_options") or {}).get("continuous_usage_stats"))
            tokens = _wanted(body)
            if "messages" in body:
                return steady_chat(tokens, self._period_s), None
            return steady(tokens, self._period_s, usage), None
        period_s = float(parts[2]) / 1000
        if not 0 < period_s <= _LONGEST_S:
            raise ValueError(parts[2])
        if kind == "load":
            return self._until_finish(int(parts[1]), period_s), None
        beat = read - read % period_s if kind == "lockstep" else read
        return steady(int(parts[1]), period_s), beat + period_s

    def _until_finish(self, count: int, period_s: float) -> Iterator[Packet]:
        for i in range(count):
            last = i == count - 1 or self._finishing
            data = event(total=i + 1, finish="length" if last else None)
            yield Packet(period_s, data + (closing(i + 1) + DONE if last else b""), (1,))
            if last:
                return

    async def _flood(self, transport: asyncio.Transport, count: int, record: dict[str, Any]) -> None:
        one = chunked(event())
        sent = 0
        while sent < count and not transport.is_closing():
            n = min(_FLOOD_EVENTS, count - sent)
            transport.write(one * n)
            sent += n
            await asyncio.sleep(0)
            while transport.get_write_buffer_size() > _FLOOD_BYTES:
                await asyncio.sleep(0.001)
        transport.write(chunked(event("", finish="length") + closing(count) + DONE))
        record["flooded"] = sent

    async def tell(self, _request: web.Request) -> web.Response:
        """The truth so far."""
        return web.json_response(self._told)

    async def finish(self, _request: web.Request) -> web.Response:
        """End the loads, each with its next token."""
        self._finishing = True
        return web.Response(text="ok")

    async def models(self, _request: web.Request) -> web.Response:
        """What other clients ask first."""
        return web.json_response({"object": "list", "data": [{"id": "stub", "object": "model"}]})


def _wanted(body: dict[str, Any]) -> int:
    return int(body.get("max_tokens") or body.get("max_completion_tokens") or 16)


async def serve(period_s: float) -> None:
    """Serve until stdin closes."""
    stub, app = Stub(period_s), web.Application(client_max_size=_MAX_BODY)
    for path in ("/v1/completions", "/v1/chat/completions"):
        app.router.add_post(path, stub.complete)
    app.router.add_get("/v1/models", stub.models)
    app.router.add_get("/health", lambda _: _ok())
    app.router.add_get("/truth", stub.tell)
    app.router.add_post("/finish", stub.finish)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
    gc.freeze()
    gc.set_threshold(100_000)  # a collection would hold packets up
    sys.stdout.write(f"{runner.addresses[0][1]}\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.read)


async def _ok() -> web.Response:
    return web.Response(text="ok")


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(float(sys.argv[1]) / 1000 if len(sys.argv) > 1 else 0.02))
