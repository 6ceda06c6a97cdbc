"""One streamed completion: bytes are stamped when they arrive and parsed later, off the hot path."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Annotated, Any

import aiohttp
import msgspec

from workbench import redact
from workbench.driver.arrivals import Arrivals, Stamped, StampedResponse
from workbench.driver.body import body_of, headers_of
from workbench.driver.messages import Item, RequestRow, Target, TokenRow, row_of
from workbench.driver.sse import EventSplitter

MAX_EVENT_BYTES = 1 << 20  # an event is some 300 bytes; beyond this the server is not sending events
_TIMES, _BEYOND = 2, 64  # of max_tokens, and on top: who counts a thought or a mark is borne, who sends without end not
_MAX_ERROR_BYTES = 1 << 14  # of the body of an answer that is no stream

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]  # what the trace can hold


class _Usage(msgspec.Struct, gc=False):
    prompt_tokens: _Count | None = None
    completion_tokens: _Count | None = None
    prompt_tokens_details: _Details | None = None


class _Details(msgspec.Struct, gc=False):
    cached_tokens: _Count | None = None


class _Delta(msgspec.Struct, gc=False):
    content: str | list[Any] | None = None  # Mistral sends a thought as a list of parts
    reasoning_content: str | None = None  # vLLM and SGLang
    reasoning: str | None = None  # newer vLLM, gateways


class _Choice(msgspec.Struct, gc=False):
    text: str | None = None
    delta: _Delta | None = None  # of a chat completion
    finish_reason: str | None = None


class _Error(msgspec.Struct):
    message: str | None = None


class _Event(msgspec.Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    error: _Error | str | None = None


_decode = msgspec.json.Decoder(_Event).decode
_UNREADABLE = (msgspec.DecodeError, RecursionError)  # the latter for JSON nested too deeply


class Stream:
    """A request on its way, and what has come back of it.

    A request is ``ok`` when all its output came: the server gave a reason for the end, or as many tokens as were asked
    for have arrived. Otherwise it is ``cancelled`` or ``error``, and its row says why.

    Args:
        item: the request.
        zero: CLOCK_MONOTONIC of the play's zero.
        planned_s: arrival that counts for TTFT, from zero.
        emit: called with each arrival of output, while parsing.
    """

    def __init__(self, item: Item, zero: float, planned_s: float, emit: Callable[[TokenRow], None]) -> None:
        self.item = item
        self.row = row_of(item, planned_s)
        self._zero, self._emit = zero, emit
        self._arrived: list[Stamped] = []  # of the body, not parsed yet
        self._arrivals: Arrivals | None = None
        self._ended: asyncio.Future[None] | None = None  # somebody waits for the end of the body
        self._events = EventSplitter()
        self._last_arrival = 0.0
        self._counted = 0  # tokens in the rows that were emitted
        self._one_an_event = False  # the server sends text without a running usage
        self._fault: str | None = None  # said by the server, or found in its events
        self._break: str | None = None  # what cut the transport
        self._closed = self._cancelled = self._given_up = False

    async def run(self, session: aiohttp.ClientSession, target: Target) -> None:
        """Send the request and collect its stream; errors end up in the row, never in the caller."""
        data, headers = msgspec.json.encode(body_of(self.item, target)), headers_of(self.item, target)
        self.row.sent_s = time.monotonic() - self._zero
        try:
            # A redirect is an error of the set-up: following it would carry the key elsewhere.
            sending = session.post(
                target.url, data=data, headers=headers, allow_redirects=False, trace_request_ctx=self
            )
            async with sending as response:
                packed = response.headers.get("Content-Encoding", "identity")
                if response.status == 200 and packed.lower() not in ("", "identity"):
                    self._fail(
                        f"a compressed answer ({packed}), though it was asked for as it is: tokens would come late"
                    )
                elif response.status == 200 and response.content_type != "application/json":
                    await self._collect(response.arrivals)
                else:
                    self._fail(await _refusal(response))
        except asyncio.CancelledError:
            self._cancelled = True
        except Exception as error:  # noqa: BLE001  whatever befell one request is data about it
            self._break = _short(f"{type(error).__name__}: {error}")
        arrivals = self._arrivals
        ended = arrivals.ended_s if arrivals is not None and arrivals.over else time.monotonic()
        self.row.done_s = ended - self._zero

    def sent(self) -> None:
        """Note that the request leaves now: before that a connection was made."""
        self.row.sent_s = time.monotonic() - self._zero

    def parse(self) -> None:
        """Turn what has arrived since the last call into token rows."""
        arrivals = self._arrivals
        arrived, self._arrived = self._arrived, []
        for at, packet in arrived if arrivals is None else arrivals.take():
            self._last_arrival = at
            for data in self._events.feed(packet):
                self._take(data, at - self._zero)
        if self._events.pending_bytes > MAX_EVENT_BYTES:
            self._fail(f"an event of over {MAX_EVENT_BYTES:,} bytes, which is no completion chunk")
            self._events, self._given_up = EventSplitter(), True
        waiting = self._ended
        if waiting is not None and arrivals is not None and (arrivals.over or self._given_up) and not waiting.done():
            waiting.set_result(None)

    def finish(self) -> RequestRow:
        """Parse the rest and settle the request's status."""
        self.parse()
        arrivals, self._arrivals = self._arrivals, None
        if arrivals is not None:
            arrivals.let_go()  # an open connection would else keep the request, and its prompt, in memory
        if self._closed:
            for data in self._events.close():
                self._take(data, self._last_arrival - self._zero)
        row = self.row
        if self._fault is None and row.finish_reason in ("abort", "error"):
            self._fail(f"the server ended the request with finish_reason {row.finish_reason!r}")
        if self._fault is None and (row.finish_reason is not None or self._counted >= row.max_tokens):
            row.status = "ok"
        elif self._fault is None and self._cancelled:
            row.status = "cancelled"
        else:
            ended_early = f"the stream ended after {self._counted} of {row.max_tokens} tokens"
            row.status, row.error = "error", self._fault or self._break or ended_early
        return row

    def cancelled_before_it_began(self) -> None:
        """Note that the request was cancelled before :meth:`run` could send it."""
        self._cancelled = True

    async def _collect(self, arrivals: Arrivals) -> None:
        """Wait for the end of the body; whoever calls :meth:`parse` takes it in, and so does its end."""
        self._arrivals, self._ended = arrivals, asyncio.get_running_loop().create_future()
        arrivals.on_end = self.parse
        try:
            self.parse()
            await self._ended
        finally:
            self.parse()  # what was there when the request was cancelled
        self._closed = arrivals.whole
        if arrivals.broken is not None:
            raise arrivals.broken

    def _take(self, data: bytes, at_s: float) -> None:
        """Take the data of one event."""
        if data == b"[DONE]" or not data or self._given_up:
            return
        try:
            event = _decode(data)
        except _UNREADABLE as error:
            self._fail(f"an event that is not a completion chunk ({error}): {data[:2_000].decode(errors='replace')}")
            return
        if event.error is not None:
            self._fail(_message(event.error))
        row, usage = self.row, event.usage
        if usage and usage.prompt_tokens and isinstance(self.item.prompt, str):
            row.prompt_tokens = usage.prompt_tokens
        said = usage.completion_tokens if usage else None
        if usage and usage.prompt_tokens_details and usage.prompt_tokens_details.cached_tokens is not None:
            row.cached_tokens = usage.prompt_tokens_details.cached_tokens
        if event.choices:
            choice = event.choices[0]
            if choice.finish_reason:  # some servers say "" until the end
                row.finish_reason = _short(choice.finish_reason)
            text = bool(choice.text) or _says_something(choice.delta)
            if text and said == 0:  # a count that nobody keeps: no text is of no tokens
                said = None
            self._count(text, said, at_s)
        row.output_tokens = self._counted if said is None or self._given_up else said

    def _count(self, text: bool, said: int | None, at_s: float) -> None:
        """Emit the row of the tokens that an event brought.

        The running usage says how many they are. A server that sends text without it is taken at one token an event;
        its closing usage then corrects the request's total, but no arrival is made up for the difference.
        """
        if said is None:
            self._one_an_event = self._one_an_event or text
        fresh = int(text) if said is None or self._one_an_event else said - self._counted
        if self._counted + fresh > _TIMES * self.row.max_tokens + _BEYOND:
            count = f"{self._counted + fresh:,} tokens of {self.row.max_tokens:,}"
            self._fail(f"{count} asked for: the server does not keep to max_tokens")
            self._given_up = True
            return
        if fresh > 0:
            self._emit(TokenRow(self.row.request, self._counted, fresh, at_s))
            self._counted += fresh
            self.row.first_s = at_s if self.row.first_s is None else self.row.first_s
            self.row.last_s = at_s

    def _fail(self, error: str) -> None:
        self._fault = self._fault or _short(error)  # what went wrong first is the cause of what follows


def _says_something(delta: _Delta | None) -> bool:
    """Whether a chat chunk brings output; the first one often brings a role alone."""
    return delta is not None and bool(delta.content or delta.reasoning_content or delta.reasoning)


async def _refusal(response: StampedResponse) -> str:
    """What an answer that is no stream says."""
    body = await response.arrivals.read(_MAX_ERROR_BYTES)
    text = body[:_MAX_ERROR_BYTES].decode(errors="replace")
    try:
        error = _decode(body).error
        text = text if error is None else _message(error)
    except _UNREADABLE:
        pass  # a proxy's HTML page, say: its beginning is shown as it is
    return f"status {response.status}: {text or response.reason or 'no reason given'}"


def _message(error: _Error | str) -> str:
    return (error if isinstance(error, str) else error.message) or "an error without a message"


def _short(text: str) -> str:
    words = "".join(letter if letter.isprintable() else " " for letter in text[:2_000])
    text = redact.text(" ".join(words.split()))  # a server may say the key again, and this goes to disk
    return text if len(text) <= 300 else text[:299] + "…"
