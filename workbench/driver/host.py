"""The workbench's handle on the driver's child, and the thread that follows a play."""

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

from workbench.children import killed_by, last_line
from workbench.driver.messages import (
    ROWS,
    Begin,
    Cancel,
    Done,
    Failed,
    Order,
    Plan,
    Report,
    Rows,
    Target,
    frame,
    rows_address,
)
from workbench.driver.play import Died, Look, Play, item_of
from workbench.errors import EngineError, WorkbenchError
from workbench.trace import Sink
from workbench.workload.request import Request, Workload

__all__ = ["DriverProcess", "Play"]

_LEAD_S = 0.05  # between the order and the play's zero, so that the first arrival is not late
_POLL_MS = 100
_LOOK_S = 0.1  # between two looks at whether the engine lives
_QUIET_S = 3.0  # after its engine died a play is left this long to end, then is cancelled and left as long again
_CLOSE_S = 5.0


class DriverProcess:
    """One child process that plays workloads against one server.

    Args:
        port: of the server on 127.0.0.1.
        api_key: goes to the child through a pipe, never on a command line.
        model: name under which the server serves.
        target: a server anywhere, in place of the three.
    """

    def __init__(
        self, port: int | None = None, api_key: str = "", model: str = "", *, target: Target | None = None
    ) -> None:
        target = target or Target(url=f"http://127.0.0.1:{port}/v1/completions", api_key=api_key, model=model)
        self._lock = threading.Lock()
        self._pipe = threading.Lock()
        self._count = 0
        self._playing = False
        self._thread: threading.Thread | None = None
        self._closed = False
        self._folder = Path(tempfile.mkdtemp(prefix="wb-"))  # mkdtemp makes it 0700
        self._socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.PULL)
        self._socket.set(zmq.RCVHWM, 0)
        try:
            self._socket.bind(rows_address(self._folder))
            (self._folder / ROWS).chmod(0o600)  # the folder keeps others out already
            with (self._folder / "stderr").open("wb") as errors:
                self._child = subprocess.Popen(
                    # -P: a notebook's folder may hold a module called like one that the child imports.
                    [sys.executable, "-P", "-m", "workbench.driver.child", str(self._folder)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    start_new_session=True,
                )
        except BaseException:
            self._discard()
            raise
        self._send(target)

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._child.pid

    def play(
        self,
        workload: Workload,
        sink: Sink,
        recording: Callable[[Play], AbstractContextManager[None]],
        died: Died,
        hold_s: float | None = None,
        text_of: Callable[[Request], str] | None = None,
        look: Look = None,
    ) -> Play:
        """Start a play.

        Args:
            workload: what to play.
            sink: where rows go.
            recording: makes the context in which the engine's own rows go to the sink; it is entered before anything
                is sent, and left when every request has ended.
            died: tells whether the engine has ended, and why.
            hold_s: requests planned from here on wait for :meth:`Play.release`.
            text_of: makes the text that is sent in place of a prompt's token ids.
            look: asks the server how it is, so that ``died`` knows: called once all requests have ended, where some
                failed that were not wrong. A server may fail them some seconds before its processes end.

        Raises:
            EngineError: a play is going on, or the client process has ended.
        """
        with self._lock:
            if self._playing:
                raise EngineError(
                    "play: got a second workload, expected one at a time; wait for the first or cancel it"
                )
            self._playing = True
            self._count += 1
            number = self._count
        try:
            items = [item_of(request, text_of) for request in workload.requests]
            for item in items:
                self._send(Plan(number, item))
            zero = time.monotonic() + _LEAD_S
            play = Play(number, items, self._send, sink, zero, text_of)
            with contextlib.ExitStack() as entered:
                entered.enter_context(recording(play))
                self._send(Begin(number, zero, dict(workload.concurrency), hold_s))
                following = (number, play, entered.pop_all(), died, look)
            self._thread = threading.Thread(target=self._follow, args=following, name=f"play {number}", daemon=True)
            self._thread.start()
        except BaseException:
            self._abandon(number)
            self._playing = False
            raise
        return play

    def close(self) -> None:
        """End the child; requests in flight end as cancelled, and what was measured of them is kept."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        if self._pipe.acquire(timeout=1.0):
            try:
                with contextlib.suppress(OSError):
                    self._child.stdin.close()  # type: ignore[union-attr]
            finally:
                self._pipe.release()
        else:  # somebody is stuck in a write to a child that does not read
            self._child.kill()
        try:
            self._child.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(_CLOSE_S)
        self._discard()

    def _discard(self) -> None:
        self._socket.close(0)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _send(self, order: Order) -> None:
        data = frame(order)
        try:
            with self._pipe:
                self._child.stdin.write(data)  # type: ignore[union-attr]
                self._child.stdin.flush()  # type: ignore[union-attr]
        except (OSError, ValueError):  # the latter once it is closed
            raise self._child_ended() from None

    def _abandon(self, number: int) -> None:
        """Tell the child to drop a play that nobody follows; if it is gone there is nothing to drop."""
        with contextlib.suppress(EngineError):
            self._send(Cancel(number))

    def _follow(self, number: int, play: Play, recording: AbstractContextManager[None], died: Died, look: Look) -> None:
        """Take a play's rows until it is done, its engine is gone, or its child is."""
        error: WorkbenchError | None = None
        try:
            with recording:
                error = self._take(number, play, died) or play.fate(died, look)
                play.give_up(str(error) if error else "added when the play had ended")
        except WorkbenchError as failure:  # of the sink: a disk that is full, say
            error = error or failure
        except Exception as failure:  # noqa: BLE001  a thread's exception would be seen by nobody
            error = error or EngineError(f"driver: {type(failure).__name__}: {failure}")
        finally:
            if error is not None:
                self._abandon(number)
            self._playing = False
            play.end(error)

    def _take(self, number: int, play: Play, died: Died) -> EngineError | None:
        decode = msgspec.msgpack.Decoder(Report).decode
        failed: EngineError | None = None
        dead: EngineError | None = None
        dead_s = looked_s = 0.0
        cancelled = False
        while True:
            child_ended = self._child.poll() is not None  # asked before the socket: what it sent last is still taken
            if self._socket.poll(_POLL_MS):
                match decode(self._socket.recv()):
                    case Failed() as report:
                        failed = failed or EngineError(f"driver: {report.error}")
                    case Done() as report if report.play == number:
                        return dead or failed
                    case Rows() as report if report.play == number:
                        play.take(report)
            elif child_ended:
                return dead or failed or died() or self._child_ended()
            now = time.monotonic()
            if now < looked_s + _LOOK_S:
                continue
            looked_s = now
            if dead is None:
                dead, dead_s = died(), now
            elif now > dead_s + 2 * _QUIET_S:
                return dead
            elif now > dead_s + _QUIET_S and not cancelled:
                cancelled = True
                self._abandon(number)

    def _child_ended(self) -> EngineError:
        """What is known of the end of the child."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(1.0)  # a pipe closes a moment before its process has ended
        code = self._child.returncode
        how = "was closed" if code is None or self._closed else f"ended with exit code {code}"
        if killer := killed_by(code):
            how = f"was killed by {killer}"
        with contextlib.suppress(OSError), (self._folder / "stderr").open("rb") as errors:
            said = last_line(errors.fileno())[:300]
            how += f" ({said})" if said else ""
        return EngineError(
            f"driver: the client process {how}, expected it to live as long as the engine; start the engine again"
        )
