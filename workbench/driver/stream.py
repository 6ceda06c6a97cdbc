"""One streamed completion: bytes are stamped when they arrive and parsed later, off the hot path."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import aiohttp
import msgspec

from workbench.driver.messages import Item, RequestRow, Target, TokenRow


class _Usage(msgspec.Struct):
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None


class _Details(msgspec.Struct):
    cached_tokens: int | None = None


class _Choice(msgspec.Struct):
    text: str | None = None
    finish_reason: str | None = None


class _Error(msgspec.Struct):
    message: str = ""


class _Event(msgspec.Struct):
    choices: list[_Choice] = []
    usage: _Usage | None = None
    error: _Error | None = None


_decode = msgspec.json.Decoder(_Event).decode


class Stream:
    """A request on its way, and what has come back of it.

    Args:
        item: the request.
        zero: CLOCK_MONOTONIC of the play's zero.
        planned_s: arrival that counts for TTFT, from zero.
    """

    def __init__(self, item: Item, zero: float, planned_s: float) -> None:
        self.item = item
        self._zero = zero
        self._arrived: list[tuple[float, bytes]] = []  # stamped, not parsed yet
        self._rest = b""  # an event that is not whole yet
        self._ended = False
        self.row = RequestRow(
            request=item.request,
            class_name=item.class_name,
            priority=item.priority,
            prompt_tokens=len(item.prompt),
            max_tokens=item.output_tokens,
            planned_s=planned_s,
        )

    async def run(self, session: aiohttp.ClientSession, target: Target) -> None:
        """Send the request and collect its stream; errors end up in the row, never in the caller."""
        body = {
            "model": target.model,
            "prompt": self.item.prompt,
            "max_tokens": self.item.output_tokens,
            "ignore_eos": True,  # output lengths are the workload's, not the model's
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
            "priority": self.item.priority,
        }
        headers = {"Authorization": f"Bearer {target.api_key}", "X-Request-Id": self.item.request}
        data = msgspec.json.encode(body)
        headers["Content-Type"] = "application/json"
        row, now, arrived = self.row, time.monotonic, self._arrived
        row.sent_s = now() - self._zero
        try:
            async with session.post(target.url, data=data, headers=headers) as response:
                if response.status != 200:
                    self._fail(f"status {response.status}: {_short(await response.text())}")
                else:
                    async for chunk in response.content.iter_any():
                        arrived.append((now(), chunk))
        except asyncio.CancelledError:
            row.status = "cancelled"
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self._fail(f"{type(error).__name__}: {error}")
        row.done_s = now() - self._zero

    def parse(self, emit: Callable[[TokenRow], None]) -> None:
        """Turn what has arrived since the last call into token rows."""
        arrived, self._arrived[:] = self._arrived[:], []
        for at, chunk in arrived:
            *events, self._rest = (self._rest + chunk).replace(b"\r\n", b"\n").split(b"\n\n")
            for event in events:
                for line in event.split(b"\n"):
                    if line.startswith(b"data:"):
                        self._take(line[5:].strip(), at - self._zero, emit)

    def finish(self, emit: Callable[[TokenRow], None]) -> RequestRow:
        """Parse the rest and settle the request's status."""
        self.parse(emit)
        row = self.row
        if row.status == "unfinished":
            whole = self._ended or row.output_tokens >= row.max_tokens
            if whole:
                row.status = "ok"
            else:
                self._fail(f"the stream ended after {row.output_tokens} of {row.max_tokens} tokens")
        return row

    def _take(self, data: bytes, at_s: float, emit: Callable[[TokenRow], None]) -> None:
        if data == b"[DONE]":
            self._ended = True
            return
        try:
            event = _decode(data)
        except msgspec.DecodeError as error:
            self._fail(f"event that is not a completion chunk ({error}): {_short(data.decode(errors='replace'))}")
            return
        if event.error is not None:
            self._fail(_short(event.error.message))
            return
        row, choice = self.row, event.choices[0] if event.choices else None
        if event.usage is not None and event.usage.prompt_tokens_details is not None:
            row.cached_tokens = event.usage.prompt_tokens_details.cached_tokens
        if choice is None:
            return
        if choice.finish_reason is not None:
            row.finish_reason = choice.finish_reason
        # The running usage says how many tokens an event carries; a server without it is taken at one an event.
        total = event.usage.completion_tokens if event.usage else row.output_tokens + bool(choice.text)
        fresh = total - row.output_tokens
        if fresh > 0:
            emit(TokenRow(row.request, row.output_tokens, fresh, at_s))
            row.output_tokens = total
            row.first_s = at_s if row.first_s is None else row.first_s
            row.last_s = at_s

    def _fail(self, error: str) -> None:
        self.row.status, self.row.error = "error", error


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 300 else text[:299] + "…"
