"""The probe's end of the records' socket. Nothing here blocks, and nothing raises into vLLM."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import zmq

from workbench.engine.probe import wire

_QUEUE = 20_000  # records held while the workbench is busy: ten minutes of steps at 30 a second


class RecordLink:
    """Pushes records; a full queue drops them and counts the drops.

    Args:
        folder: the engine's socket folder; none (vLLM started without the workbench) makes every call a no-op.
    """

    def __init__(self, folder: str | None = None) -> None:
        folder = folder or os.environ.get(wire.ENV_FOLDER)
        self.dropped = 0
        self._encoder = msgspec.msgpack.Encoder()
        self._socket: zmq.Socket[bytes] | None = None
        self._hello = Path(folder) / wire.HELLO if folder else None
        if folder and Path(folder).is_dir():
            self._socket = zmq.Context.instance().socket(zmq.PUSH)
            self._socket.set(zmq.SNDHWM, _QUEUE)
            self._socket.set(zmq.LINGER, 200)
            self._socket.connect(wire.endpoint(folder))

    def send(self, record: wire.Record) -> None:
        """Queue one record, or drop it."""
        if self._socket is None:
            return
        if type(record) is wire.SchedulerHello:
            self._leave(record)
        try:
            self._socket.send(self._encoder.encode(record), zmq.NOBLOCK)
        except zmq.ZMQError:
            self.dropped += 1

    def fault(self, where: str, error: BaseException) -> None:
        """Report an error of the probe itself."""
        self.send(wire.Fault(where=where, error=f"{type(error).__name__}: {error}"))

    def _leave(self, hello: wire.SchedulerHello) -> None:
        """Leave the hello in the folder: who attaches later, or again, finds it there."""
        if self._hello is None:
            return
        try:
            self._hello.write_bytes(self._encoder.encode(hello))
        except OSError as error:
            self.fault("hello", error)


def now_us(since: float) -> float:
    """Microseconds since a ``time.perf_counter()`` reading."""
    return (time.perf_counter() - since) * 1e6
