"""The driver's child process: ``python -m workbench.driver.child FOLDER``. Orders on stdin, rows over ZMQ.

It ends when stdin closes, so it never outlives the workbench, and it takes the folder of the rows socket with it: a
workbench that was killed cannot.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import resource
import shutil
import signal
import ssl
import sys
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import zmq

from workbench.driver.arrivals import stamping_session
from workbench.driver.messages import (
    Add,
    Begin,
    Cancel,
    Done,
    Failed,
    Item,
    Order,
    Plan,
    Release,
    Report,
    Target,
    rows_address,
)
from workbench.driver.player import Player
from workbench.redact import know

_GRACE_S = 1.0  # for cancelled plays to report, once stdin has closed
_LINGER_MS = 500  # for their rows to leave; with the workbench dead nobody takes them
# vLLM closes an idle connection after 5 s (VLLM_HTTP_TIMEOUT_KEEP_ALIVE). A request that is sent at that moment fails,
# so the client gives the connection up first.
_KEEP_ALIVE_S = 2.0

_decode = msgspec.msgpack.Decoder(Order).decode


class Child:
    """Reads orders and runs plays until stdin closes.

    Args:
        address: ZMQ address for the rows.
    """

    def __init__(self, address: str) -> None:
        self._encode = msgspec.msgpack.Encoder().encode
        self._planned: dict[int, list[Item]] = {}
        self._plays: dict[int, Player] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._rows: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PUSH)
        self._rows.set(zmq.SNDHWM, 0)  # rows are the measurement: none is dropped, memory bounds them
        self._rows.set(zmq.LINGER, _LINGER_MS)
        self._rows.connect(address)

    async def run(self) -> None:
        """Serve until the workbench goes away."""
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._hear)
        reader = asyncio.StreamReader(limit=1 << 30)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        try:
            await self._serve(reader)
        except Exception as error:  # noqa: BLE001  the workbench must hear of it: nobody sees this process
            self._fail(error)
        finally:
            self._rows.close()

    async def _serve(self, reader: asyncio.StreamReader) -> None:
        target = await self._next(reader)
        if not isinstance(target, Target):
            return
        know(target.api_key)
        # No limit on connections and none on time: a queue in the client would hide the queue in the server.
        async with stamping_session(limit=0, keepalive_timeout=_KEEP_ALIVE_S, ssl=trust(target)) as session:
            while (order := await self._next(reader)) is not None:
                self._obey(order, session, target)
            for player in self._plays.values():
                player.cancel()
            if self._tasks:
                await asyncio.wait(self._tasks, timeout=_GRACE_S)

    async def _next(self, reader: asyncio.StreamReader) -> Order | None:
        try:
            size = int.from_bytes(await reader.readexactly(4), "big")
            return _decode(await reader.readexactly(size))
        except (asyncio.IncompleteReadError, OSError):
            return None

    def _obey(self, order: Order, session: aiohttp.ClientSession, target: Target) -> None:
        match order:
            case Plan():
                self._planned.setdefault(order.play, []).append(order.item)
            case Begin():
                gc.freeze()  # the workload lives as long as the play: collections need not walk it
                items = self._planned.pop(order.play, [])
                player = self._plays[order.play] = Player(session, target, order.play, items, self._report)
                task = asyncio.create_task(self._play(player, order))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            case Release() if order.play in self._plays:
                self._plays[order.play].release()
            case Add() if order.play in self._plays:
                self._plays[order.play].add(order.item)
            case Cancel():
                self._planned.pop(order.play, None)
                if order.play in self._plays:
                    self._plays[order.play].cancel()

    async def _play(self, player: Player, order: Begin) -> None:
        try:
            await player.run(order.zero, order.concurrency, order.hold_s)
        except Exception as error:  # noqa: BLE001  as above
            self._fail(error)
        finally:
            del self._plays[order.play]
            gc.unfreeze()
            self._report(Done(order.play))

    def _hear(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Report what asyncio would only log."""
        self._fail(context.get("exception") or RuntimeError(context["message"]))

    def _fail(self, error: BaseException) -> None:
        self._report(Failed(f"{type(error).__name__}: {error}"))

    def _report(self, report: Report) -> None:
        self._rows.send(self._encode(report), zmq.NOBLOCK)


def trust(target: Target) -> bool | ssl.SSLContext:
    """Whose certificates the client accepts."""
    if target.insecure:
        return False
    return ssl.create_default_context(cafile=target.verify) if target.verify else True


def _run(serving: Coroutine[Any, Any, None]) -> None:
    """Run on uvloop where it is there (it comes with vLLM): it reads packets at a fraction of asyncio's cost."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(serving)
    else:
        uvloop.run(serving)


def main() -> None:
    """Entry point of the child."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    folder = Path(sys.argv[1])
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # each stream is a file; 1,024 is a common default
    try:
        _run(Child(rows_address(folder)).run())
    finally:
        zmq.Context.instance().term()  # waits for the rows to leave, for as long as their linger allows
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
