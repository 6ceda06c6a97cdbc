"""A workload that is being played, as the workbench sees it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable

import msgspec

from workbench.driver.messages import Add, Cancel, Item, Order, Release, Rows, TokenRow, is_refused, row_of
from workbench.errors import EngineError, InputError, WorkbenchError
from workbench.trace import Sink
from workbench.workload.request import Request

_FATE_S = 1.0  # how much later than its clients the guard may learn of an engine's end

TextOf = Callable[[Request], str]
Died = Callable[[], EngineError | None]  # whether the engine has ended, and why
Look = Callable[[], object] | None  # asks the server how it is, so that a Died knows


class Play:
    """A workload that is being played; see :class:`workbench.engine.protocol.Playing`.

    Args:
        number: of the play, in its child.
        items: what is played.
        send: sends an order to the child.
        sink: where rows go.
        zero: CLOCK_MONOTONIC of the play's zero.
        text_of: makes the text that is sent in place of a prompt's token ids.
    """

    def __init__(
        self,
        number: int,
        items: Iterable[Item],
        send: Callable[[Order], None],
        sink: Sink,
        zero: float,
        text_of: TextOf | None = None,
    ) -> None:
        self._text_of = text_of
        self.zero = zero
        self.in_flight = 0
        self.output_tokens = 0  # that have arrived
        self.broken = 0  # requests that failed, and not because the server found them wrong
        self.error: WorkbenchError | None = None
        self._number, self._send, self._sink = number, send, sink
        self._unreported = {item.request: item for item in items}
        self._names = set(self._unreported)
        self._over = False
        self._lock = threading.Lock()
        self._done = threading.Event()

    @property
    def done(self) -> bool:
        """Whether all requests have ended."""
        return self._done.is_set()

    def add(self, request: Request) -> None:
        """Play one more request, now.

        Raises:
            InputError: the play has a request of that name.
            EngineError: the play has ended, or the client process has.
        """
        item = item_of(request, self._text_of)
        with self._lock:
            if self._over:
                raise EngineError(
                    f"add: got request {item.request!r} after the end, expected a play that goes on; start another"
                )
            if item.request in self._names:
                raise InputError("request", item.request, "a name that the play does not have yet", "choose another")
            self._names.add(item.request)
            self._unreported[item.request] = item
            self._send(Add(self._number, item))

    @property
    def now_s(self) -> float:
        """Seconds since its zero."""
        return time.monotonic() - self.zero

    def reach(self, at_s: float) -> bool:
        """Wait until ``at_s`` seconds after its zero; false if all requests have ended before."""
        return not self._done.wait(max(0.0, at_s - self.now_s))

    def release(self) -> None:
        """Send the requests that were held; see :meth:`workbench.engine.protocol.Engine.play`."""
        if not self.done:
            self._send(Release(self._number))

    def cancel(self) -> None:
        """End all requests; what was measured stays."""
        if not self.done:
            self._send(Cancel(self._number))

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until all requests have ended.

        Raises:
            EngineDiedError: the engine ended in the meantime.
            EngineError: the driver failed.
            StoreError: the rows could not be kept.
        """
        ended = self._done.wait(timeout_s)
        if ended and self.error is not None:
            raise self.error
        return ended

    def take(self, rows: Rows) -> None:
        """Hand rows of the child to the sink."""
        self.in_flight = rows.in_flight
        if rows.tokens:
            self.output_tokens += sum(row.n for row in rows.tokens)
            self._sink.rows("tokens", [_token(row) for row in rows.tokens])
        if rows.late:
            self._sink.rows("client", [{"t_s": row.t_s, "late_s": row.late_s} for row in rows.late])
        if rows.requests:
            for row in rows.requests:
                self._unreported.pop(row.request, None)
                self.broken += row.status == "error" and not is_refused(row)
            self._sink.rows("requests", [msgspec.to_builtins(row) for row in rows.requests])

    def fate(self, died: Died, look: Look = None) -> EngineError | None:
        """Whether the engine has died; requests that failed may have learned of it before the guard did."""
        if self.broken and look is not None:
            look()
        deadline = time.monotonic() + (_FATE_S if self.broken else 0.0)
        while (error := died()) is None and time.monotonic() < deadline:
            time.sleep(0.02)
        return error

    def give_up(self, why: str) -> None:
        """Report the requests that the child can no longer report as unfinished; none is added from now on."""
        with self._lock:
            self._over = True
            left, self._unreported = list(self._unreported.values()), {}
        self.in_flight = 0
        if left:
            rows = [row_of(item, item.arrival_s) for item in left]
            self._sink.rows("requests", [{**msgspec.to_builtins(row), **_unknown(why)} for row in rows])

    def end(self, error: WorkbenchError | None = None) -> None:
        """Note that the play is over."""
        self.error, self._over = error, True
        self._done.set()


def item_of(request: Request, text_of: TextOf | None = None) -> Item:
    """A request as the child takes it, with its token ids or the text that ``text_of`` makes of them."""
    return Item(
        request.request,
        request.class_name,
        request.priority,
        request.arrival_s,
        request.prompt if text_of is None else text_of(request),
        request.output_tokens,
    )


def _token(row: TokenRow) -> dict[str, object]:
    return {"request": row.request, "index": row.index, "n": row.n, "client_s": row.client_s}


def _unknown(why: str) -> dict[str, object]:
    """How far an unfinished request got is in the tokens table, if anywhere; its row claims nothing."""
    return {"output_tokens": None, "status": "unfinished", "error": why}
