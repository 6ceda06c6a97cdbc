"""Plays one workload: sends each request at its time and reports what comes back."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import aiohttp

from workbench.driver.messages import Begin, Item, Report, RequestRow, Rows, Target, TokenRow
from workbench.driver.stream import Stream

FLUSH_S = 0.1  # between two parses: short enough for a live chart, long enough to stay off the hot path


class Player:
    """One play.

    Args:
        session: HTTP session that all plays of a child share.
        target: the server.
        order: what to play.
        report: called with rows; must not block.
    """

    def __init__(
        self, session: aiohttp.ClientSession, target: Target, order: Begin, report: Callable[[Report], None]
    ) -> None:
        self._session, self._target, self._order, self._report = session, target, order, report
        self._streams: dict[asyncio.Task[None], Stream] = {}
        self._ended: list[Stream] = []
        self._waiting: dict[str, Item] = {item.request: item for item in order.items}
        self._sources: set[asyncio.Task[None]] = set()
        self._cancelled = False

    async def run(self) -> None:
        """Play to the end; returns when every request has ended and has been reported."""
        order = self._order
        open_loop = [item for item in order.items if item.class_name not in order.concurrency]
        self._source(self._send_on_time(open_loop))
        for class_name, width in order.concurrency.items():
            queue = [item for item in order.items if item.class_name == class_name]
            shared = iter(queue)
            for _ in range(min(width, len(queue))):
                self._source(self._keep_one_in_flight(shared))
        while self._sources or self._streams:
            await asyncio.sleep(0.005 if self._cancelled else FLUSH_S)
            self._flush()
        self._flush()
        if self._waiting:
            self._send([], [self._never_sent(item) for item in self._waiting.values()])

    def add(self, item: Item) -> None:
        """Play one more request, now."""
        if not self._cancelled:
            self._launch(item, time.monotonic() - self._order.zero)

    def cancel(self) -> None:
        """End all requests; those not sent yet are reported as cancelled."""
        self._cancelled = True
        for task in (*self._sources, *self._streams):
            task.cancel()

    def _source(self, sending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(sending)
        self._sources.add(task)
        task.add_done_callback(self._sources.discard)

    async def _send_on_time(self, items: list[Item]) -> None:
        for item in items:
            delay = self._order.zero + item.arrival_s - time.monotonic()
            if delay > 0:
                await asyncio.sleep(delay)
            self._launch(item, item.arrival_s)

    async def _keep_one_in_flight(self, items: Iterator[Item]) -> None:
        for item in items:
            await asyncio.sleep(max(0.0, self._order.zero + item.arrival_s - time.monotonic()))
            await asyncio.wait([self._launch(item, time.monotonic() - self._order.zero)])

    def _launch(self, item: Item, planned_s: float) -> asyncio.Task[None]:
        self._waiting.pop(item.request, None)
        stream = Stream(item, self._order.zero, planned_s)
        task = asyncio.create_task(stream.run(self._session, self._target))
        self._streams[task] = stream
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Task[None]) -> None:
        stream = self._streams.pop(task)
        if task.cancelled():  # before it had begun
            stream.row.status = "cancelled"
        self._ended.append(stream)

    def _flush(self) -> None:
        tokens: list[TokenRow] = []
        for stream in self._streams.values():
            stream.parse(tokens.append)
        ended, self._ended = self._ended, []
        requests = [stream.finish(tokens.append) for stream in ended]
        if tokens or requests:
            self._send(tokens, requests)

    def _send(self, tokens: list[TokenRow], requests: list[RequestRow]) -> None:
        self._report(Rows(self._order.play, tokens, requests, len(self._streams)))

    def _never_sent(self, item: Item) -> RequestRow:
        return RequestRow(
            request=item.request,
            class_name=item.class_name,
            priority=item.priority,
            prompt_tokens=len(item.prompt),
            max_tokens=item.output_tokens,
            planned_s=item.arrival_s,
            status="cancelled",
        )
