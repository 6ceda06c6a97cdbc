"""While a run goes on: an attached server's ``/metrics``, and whether there is still a server."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
import time
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from workbench.engine.attached_http import Caller
from workbench.errors import EngineDiedError, WorkbenchError
from workbench.telemetry.metrics_page import Page, quantiles, server_row
from workbench.trace import Sink

PERIOD_S = 0.5
_AGAIN_S = 0.1  # until a refused connection is tried again
_REFUSALS = 2  # in a row, after which the server is gone: one may hit a full queue
_TIMEOUT_S = 3.0
SILENT_S = 15.0  # without an answer and a token: a server that reads a large prompt may be deaf for some seconds
_DEAD = 503  # what vLLM answers to /health once its engine core is dead
_RESIDENT = "server rss (/metrics)"  # of the API server's process alone


class Watch:
    """Reads a server's metrics in a thread, and learns whether it is gone.

    Args:
        caller: of the server.
        metrics: whether it has metrics that we know.
    """

    def __init__(self, caller: Caller, *, metrics: bool) -> None:
        self._caller, self._metrics = caller, metrics
        parts = urllib.parse.urlsplit(caller.config.url)
        self._address = (parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80))
        self._refused = 0
        self.gone: str | None = None
        self.histograms: dict[str, Any] | None = None  # of the last run, while it goes on as well
        self.missed = 0  # readings that did not come
        self._answered_s = self._token_s = time.monotonic()  # when it last answered a reading, and sent a token
        self._tokens = 0
        self._first: Page | None = None
        self._fresh: list[tuple[float, dict[str, Any], int | None]] = []  # CLOCK_MONOTONIC, row, resident bytes

    @property
    def death(self) -> EngineDiedError | None:
        """The error to raise if nothing listens there any more."""
        if self.gone is None:
            return None
        return EngineDiedError(
            f"attached server {self._caller.config.url}: {self.gone}; what was measured is kept, "
            "attach again when it is up"
        )

    def ask(self) -> None:
        """Ask how it is, where requests have failed: it may know of its engine's death seconds before it ends."""
        with contextlib.suppress(OSError, http.client.HTTPException, WorkbenchError):
            for _ in range(2):
                answer = self._caller.ask(f"{self._caller.config.root}/health", timeout_s=_TIMEOUT_S)
                if answer.status != _DEAD:
                    return
                time.sleep(_AGAIN_S)
            self.gone = f"it says {_DEAD} to /health: its engine is dead"

    def silence(self, tokens: int) -> str:
        """In a line, that it neither answers nor sends output for long, while it owes some; empty where it does.

        It is no proof of a hang, so nothing is ended for it. Of a server without metrics nothing is known.

        Args:
            tokens: that have arrived so far.
        """
        now = time.monotonic()
        if tokens != self._tokens:
            self._tokens, self._token_s = tokens, now
        silent_s = now - max(self._token_s, self._answered_s)
        if not self._metrics or silent_s < SILENT_S:
            return ""
        return (
            f"attached server {self._caller.config.url}: no answer and no token for {silent_s:.0f} s, expected some: "
            "it hangs or cannot be reached; wait, or stop the load: what came is kept"
        )

    def before(self) -> None:
        """Take the first reading of a run, before its clock begins: it takes a moment, and no request is to wait."""
        self.histograms, self.missed, self._first, self._fresh = None, 0, None, []
        self._look()
        self._tokens, self._answered_s, self._token_s = 0, time.monotonic(), time.monotonic()

    @contextmanager
    def into(self, sink: Sink, zero: float) -> Iterator[None]:
        """Read metrics into ``sink`` inside the block, to its last moment; :meth:`before` was called before it.

        Args:
            sink: where rows of the tables ``server`` and ``memory`` go.
            zero: CLOCK_MONOTONIC of the run's zero.
        """
        over = threading.Event()
        self._hand_over(sink, zero)
        thread = threading.Thread(target=self._run, args=(over, sink, zero), name="attached-metrics", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(2 * _TIMEOUT_S)
            if self.gone is None and not thread.is_alive():
                self._look()
                self._hand_over(sink, zero)

    def _run(self, over: threading.Event, sink: Sink, zero: float) -> None:
        while not over.wait(_AGAIN_S if self._refused else PERIOD_S):
            if self.gone is None:
                self._look()
                self._hand_over(sink, zero)

    def _hand_over(self, sink: Sink, zero: float) -> None:
        """Rows of what was read, on the run's clock."""
        fresh, self._fresh = self._fresh, []
        for at, row, resident in fresh:
            if row:
                sink.rows("server", [{"t_s": at - zero} | row])
            if resident is not None:
                sink.rows("memory", [{"t_s": at - zero, "source": _RESIDENT, "bytes": resident}])

    def _look(self) -> None:
        """One reading; a server that is slow or in trouble costs a reading and no more."""
        try:
            if self._metrics:
                self._read()
            else:
                socket.create_connection(self._address, _TIMEOUT_S).close()
            self._refused = 0
        except ConnectionRefusedError:
            self.missed += 1
            self._refused += 1
            if self._refused >= _REFUSALS:
                self.gone = "nothing listens there any more (connection refused)"
        except (OSError, http.client.HTTPException, WorkbenchError):
            self.missed += 1

    def _read(self) -> None:
        asked = time.monotonic()
        answer = self._caller.ask(f"{self._caller.config.root}/metrics", timeout_s=_TIMEOUT_S)
        self._answered_s = time.monotonic()
        if answer.status != 200:
            self.missed += 1
            return
        at = (asked + time.monotonic()) / 2
        page = Page.parse(answer.body.decode(errors="replace"))
        first = self._first = self._first or page
        self._fresh.append((at, server_row(page, first), page.resident_bytes))
        self.histograms = quantiles(page, first)
