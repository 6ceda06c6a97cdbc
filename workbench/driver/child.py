"""The driver's child process: ``python -m workbench.driver.child``. Orders on stdin, rows over ZMQ.

It ends when stdin closes, so it never outlives the workbench.
"""

from __future__ import annotations

import asyncio
import gc
import signal
import sys

import aiohttp
import msgspec
import zmq

from workbench.driver.messages import Add, Begin, Cancel, Done, Failed, Order, Report, Target
from workbench.driver.player import Player

_decode = msgspec.msgpack.Decoder(Order).decode


class Child:
    """Reads orders and runs plays until stdin closes."""

    def __init__(self) -> None:
        self._encode = msgspec.msgpack.Encoder().encode
        self._plays: dict[int, Player] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Serve until the workbench goes away."""
        reader = asyncio.StreamReader(limit=1 << 30)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        target = await self._next(reader)
        if not isinstance(target, Target):
            return
        self._rows: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PUSH)
        self._rows.set(zmq.SNDHWM, 0)  # rows are the measurement: none is dropped, memory bounds them
        self._rows.set(zmq.LINGER, 0)
        self._rows.connect(target.rows)
        # No limit on connections and none on time: a queue in the client would hide the queue in the server.
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, force_close=False), timeout=aiohttp.ClientTimeout(total=None)
        ) as session:
            while (order := await self._next(reader)) is not None:
                self._obey(order, session, target)
            for player in self._plays.values():
                player.cancel()

    async def _next(self, reader: asyncio.StreamReader) -> Order | None:
        try:
            size = int.from_bytes(await reader.readexactly(4), "big")
            return _decode(await reader.readexactly(size))
        except (asyncio.IncompleteReadError, OSError):
            return None

    def _obey(self, order: Order, session: aiohttp.ClientSession, target: Target) -> None:
        match order:
            case Begin():
                self._plays[order.play] = Player(session, target, order, self._report)
                task = asyncio.create_task(self._play(order.play))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            case Add() if order.play in self._plays:
                self._plays[order.play].add(order.item)
            case Cancel() if order.play in self._plays:
                self._plays[order.play].cancel()

    async def _play(self, play: int) -> None:
        try:
            await self._plays[play].run()
        except Exception as error:  # noqa: BLE001  the workbench must hear of it: nobody sees this process
            self._report(Failed(f"{type(error).__name__}: {error}"))
        finally:
            del self._plays[play]
            self._report(Done(play))

    def _report(self, report: Report) -> None:
        self._rows.send(self._encode(report), zmq.NOBLOCK)


def main() -> None:
    """Entry point of the child."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()  # what is loaded now lives for ever; collections then look at plays only
    asyncio.run(Child().run())


if __name__ == "__main__":
    main()
