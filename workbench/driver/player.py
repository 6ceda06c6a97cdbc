"""Plays one workload: sends each request at its time and reports what comes back."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import Any

import aiohttp

from workbench.driver.lateness import Lateness
from workbench.driver.messages import Item, Report, RequestRow, Rows, Target, TokenRow, row_of
from workbench.driver.stream import Stream

FLUSH_S = 0.05  # between two parses: short enough for a live chart, long enough to stay off the hot path
_HURRIED_FLUSH_S = 0.005  # once cancelled
_SLICE_S = 2e-4  # parsing at a stretch: packets that arrive meanwhile are stamped late by no more


class Player:
    """One play.

    Args:
        session: HTTP session that all plays of a child share.
        target: the server.
        play: number of the play.
        items: what to play.
        report: called with rows; must not block.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        target: Target,
        play: int,
        items: Sequence[Item],
        report: Callable[[Report], None],
    ) -> None:
        self._session, self._target, self._play, self._report = session, target, play, report
        self._items = sorted(items, key=lambda item: item.arrival_s)
        self._waiting = {item.request: item for item in items}
        self._zero = 0.0
        self._streams: dict[asyncio.Task[None], Stream] = {}
        self._ended: list[Stream] = []
        self._tokens: list[TokenRow] = []
        self._sources: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        self._cancelled = False
        self._told_in_flight = 0
        self._idle, self._released = asyncio.Event(), asyncio.Event()
        self._hold_s: float | None = None
        self._lateness: Lateness | None = None

    async def run(self, zero: float, concurrency: Mapping[str, int], hold_s: float | None = None) -> None:
        """Play to the end; returns when every request has ended and has been reported.

        Args:
            zero: CLOCK_MONOTONIC that arrivals count from.
            concurrency: for classes with fixed concurrency, how many of the class are in flight at once.
            hold_s: requests planned from here on wait for :meth:`release`.
        """
        self._zero, self._hold_s = zero, hold_s
        self._lateness = Lateness(zero)
        try:
            await self._run(concurrency)
        finally:
            self._lateness.stop()

    async def _run(self, concurrency: Mapping[str, int]) -> None:
        if not self._cancelled:
            self._source(self._send_on_time([item for item in self._items if item.class_name not in concurrency]))
            for class_name, width in concurrency.items():
                shared = iter([item for item in self._items if item.class_name == class_name])
                for _ in range(width):
                    self._source(self._keep_one_in_flight(shared))
        while self._sources or self._streams or self._ended:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._idle.wait(), _HURRIED_FLUSH_S if self._cancelled else FLUSH_S)
            self._idle.clear()
            await self._flush()
            if self._failure is not None:
                self.cancel()
        if self._waiting:
            self._send([_never_sent(item) for item in self._waiting.values()])
        if self._failure is not None:
            raise self._failure

    def add(self, item: Item) -> None:
        """Play one more request, now."""
        if self._cancelled:
            self._waiting[item.request] = item
        else:
            self._launch(item, time.monotonic() - self._zero)

    def release(self) -> None:
        """Send what was held."""
        self._released.set()

    def cancel(self) -> None:
        """End all requests; those not sent yet are reported as cancelled."""
        self._cancelled = True
        for task in (*self._sources, *self._streams):
            task.cancel()

    def _source(self, sending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(sending)
        self._sources.add(task)
        task.add_done_callback(self._end_source)

    def _end_source(self, task: asyncio.Task[None]) -> None:
        self._sources.discard(task)
        if not task.cancelled():
            self._failure = self._failure or task.exception()

    async def _send_on_time(self, items: list[Item]) -> None:
        for item in items:
            await self._until(item.arrival_s)
            await self._not_held(item)
            self._launch(item, item.arrival_s)

    async def _keep_one_in_flight(self, items: Iterator[Item]) -> None:
        free_s = 0.0  # since when this place is free
        for item in items:
            await self._until(item.arrival_s)
            await self._not_held(item)
            task, stream = self._launch(item, max(free_s, item.arrival_s))
            await asyncio.wait([task])
            free_s = stream.row.done_s or time.monotonic() - self._zero

    async def _until(self, at_s: float) -> None:
        # Once more where a timer was early: uvloop's are rounded to milliseconds.
        while (delay := self._zero + at_s - time.monotonic()) > 0:
            await asyncio.sleep(delay)

    async def _not_held(self, item: Item) -> None:
        if self._hold_s is not None and item.arrival_s >= self._hold_s:
            await self._released.wait()

    def _launch(self, item: Item, planned_s: float) -> tuple[asyncio.Task[None], Stream]:
        self._waiting.pop(item.request, None)
        stream = Stream(item, self._zero, planned_s, self._tokens.append)
        task = asyncio.create_task(stream.run(self._session, self._target))
        self._streams[task] = stream
        task.add_done_callback(self._end)
        return task, stream

    def _end(self, task: asyncio.Task[None]) -> None:
        stream = self._streams.pop(task)
        if task.cancelled():
            stream.cancelled_before_it_began()
        else:
            self._failure = self._failure or task.exception()
        self._ended.append(stream)
        if not self._streams and not self._sources:  # nothing else is to come: report at once
            self._idle.set()

    async def _flush(self) -> None:
        """Report what arrived since the last time, and let packets in while parsing."""
        ended, self._ended = self._ended, []
        since = time.monotonic()
        for stream in (*self._streams.values(), *ended):
            stream.parse()
            if time.monotonic() - since > _SLICE_S:
                await asyncio.sleep(0)
                since = time.monotonic()
        self._send([stream.finish() for stream in ended])

    def _send(self, requests: list[RequestRow]) -> None:
        tokens, in_flight = self._tokens[:], len(self._streams)
        late = self._lateness.take() if self._lateness else []
        self._tokens.clear()  # emptied in place: the streams hold its append
        if tokens or requests or late or in_flight != self._told_in_flight:
            self._told_in_flight = in_flight
            self._report(Rows(self._play, tokens, requests, in_flight, late))


def _never_sent(item: Item) -> RequestRow:
    row = row_of(item, item.arrival_s)
    row.status = "cancelled"
    return row
