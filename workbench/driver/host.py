"""The workbench's handle on the driver's child, and on the plays that it runs."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
import zmq

from workbench.driver.messages import (
    Add,
    Begin,
    Cancel,
    Done,
    Failed,
    Item,
    Order,
    Report,
    Rows,
    Target,
    TokenRow,
    frame,
    rows_address,
)
from workbench.errors import EngineError
from workbench.trace import Sink
from workbench.workload.request import Request, Workload

_LEAD_S = 0.05  # between the order and the play's zero, so that the first arrival is not late
_POLL_MS = 100
_QUIET_S = 3.0  # how long a play may stay open after its engine has died


class Play:
    """A workload that is being played; see :class:`workbench.engine.protocol.Playing`."""

    def __init__(self, number: int, send: Callable[[Order], None], sink: Sink, zero: float) -> None:
        self.zero = zero
        self.in_flight = 0
        self.error: EngineError | None = None
        self._number, self._send, self._sink = number, send, sink
        self._done = threading.Event()

    @property
    def done(self) -> bool:
        """Whether all requests have ended."""
        return self._done.is_set()

    def add(self, request: Request) -> None:
        """Play one more request, now."""
        self._send(Add(self._number, _item(request)))

    def cancel(self) -> None:
        """End all requests; what was measured stays."""
        self._send(Cancel(self._number))

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until all requests have ended.

        Raises:
            EngineDiedError: the engine ended in the meantime.
            EngineError: the driver failed.
        """
        ended = self._done.wait(timeout_s)
        if ended and self.error is not None:
            raise self.error
        return ended

    def take(self, rows: Rows) -> None:
        """Hand rows of the child to the sink."""
        self.in_flight = rows.in_flight
        if rows.tokens:
            self._sink.rows("tokens", [_token(row) for row in rows.tokens])
        if rows.requests:
            self._sink.rows("requests", [msgspec.to_builtins(row) for row in rows.requests])

    def end(self, error: EngineError | None = None) -> None:
        """Note that the play is over."""
        self.error = self.error or error
        self._done.set()


class DriverProcess:
    """One child process that plays workloads against one server.

    Args:
        port: of the server on 127.0.0.1.
        api_key: goes to the child through a pipe, never on a command line.
        model: name under which the server serves.
    """

    def __init__(self, port: int, api_key: str, model: str) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="wb-"))
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PULL)
        self._socket.set(zmq.RCVHWM, 0)
        address = rows_address(self._folder)
        self._socket.bind(address)
        self._child = subprocess.Popen(
            [sys.executable, "-m", "workbench.driver.child"], stdin=subprocess.PIPE, start_new_session=True
        )
        self._lock = threading.Lock()
        self._count = 0
        self._current: tuple[int, Play] | None = None
        self._closed = threading.Event()
        url = f"http://127.0.0.1:{port}/v1/completions"
        self._send(Target(url=url, api_key=api_key, model=model, rows=address))

    def play(
        self,
        workload: Workload,
        sink: Sink,
        recording: Callable[[float], AbstractContextManager[None]],
        died: Callable[[], EngineError | None],
    ) -> Play:
        """Start a play.

        Args:
            workload: what to play.
            sink: where rows go.
            recording: makes the context, from the play's zero, in which the engine's own rows go to the sink.
            died: tells whether the engine has ended, and why.

        Raises:
            EngineError: a play is going on.
        """
        with self._lock:
            if self._current is not None:
                raise EngineError(
                    "play: got a second workload, expected one at a time; wait for the first or cancel it"
                )
            self._count += 1
            number = self._count
            zero = time.monotonic() + _LEAD_S
            play = Play(number, self._send, sink, zero)
            self._current = (number, play)
        try:
            items = [_item(request) for request in workload.requests]
            self._send(Begin(number, zero, items, dict(workload.concurrency)))
            thread = threading.Thread(target=self._follow, args=(number, play, recording(zero), died), daemon=True)
            thread.start()
        except BaseException:
            self._current = None
            raise
        return play

    def close(self) -> None:
        """End the child."""
        if self._closed.is_set():
            return
        self._closed.set()
        with contextlib.suppress(OSError):
            if self._child.stdin:
                self._child.stdin.close()
        try:
            self._child.wait(5.0)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        deadline = time.monotonic() + 5.0
        while self._current is not None and time.monotonic() < deadline:
            time.sleep(0.01)
        self._socket.close(0)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _send(self, order: Order) -> None:
        try:
            if self._child.stdin:
                self._child.stdin.write(frame(order))
                self._child.stdin.flush()
        except (OSError, ValueError) as error:
            raise EngineError(
                f"driver: got a closed pipe ({error}), expected a running child; start the engine again"
            ) from None

    def _follow(
        self,
        number: int,
        play: Play,
        recording: AbstractContextManager[None],
        died: Callable[[], EngineError | None],
    ) -> None:
        """Take a play's rows until it is done, its engine is gone, or the driver is closed."""
        error: EngineError | None = None
        decoder = msgspec.msgpack.Decoder(Report)
        try:
            with recording:
                dead_since: float | None = None
                while True:
                    if self._socket.poll(_POLL_MS):
                        report = decoder.decode(self._socket.recv())
                        if isinstance(report, Failed):
                            error = EngineError(f"driver: {report.error}")
                        elif report.play != number:
                            continue
                        elif isinstance(report, Done):
                            break
                        else:
                            play.take(report)
                        continue
                    if self._closed.is_set() or self._child.poll() is not None:
                        error = error or died() or EngineError("driver: the client process ended in mid-run")
                        break
                    if died() is not None:
                        dead_since = dead_since or time.monotonic()
                        if time.monotonic() - dead_since > _QUIET_S:
                            break
            error = error or died()
        except Exception as failure:  # noqa: BLE001  a thread's exception would be seen by nobody
            error = EngineError(f"driver: {type(failure).__name__}: {failure}")
        finally:
            self._current = None
            play.end(error)


def _item(request: Request) -> Item:
    return Item(
        request.request,
        request.class_name,
        request.priority,
        request.arrival_s,
        list(request.prompt),
        request.output_tokens,
    )


def _token(row: TokenRow) -> dict[str, object]:
    return {"request": row.request, "index": row.index, "n": row.n, "client_s": row.client_s}
