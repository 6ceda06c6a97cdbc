"""NVML, the NVIDIA driver's management library; the only module that imports ``pynvml``.

Every call goes through :meth:`Library.query`, which never raises: it answers a value, or the reason why there is none.
A machine without GPU, driver or library is a normal state with a reason, and a lost GPU answers its reason until it
recovers. A GPU can be reset only when no process has NVML open on it: :meth:`Library.close` lets go of it.
Calls of all threads pass one gate, so that a shutdown never meets a call in flight.

Tested with the real ``pynvml`` against a stub ``libnvidia-ml.so.1``; not run on a GPU.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

from workbench.telemetry.answers import Answer

RETRY_LIBRARY_S = 5.0  # a library or driver that did not come up is tried again this often
RETRY_DEVICE_S = 1.0  # so is a lost device

INVALID, NOT_SUPPORTED, NOT_FOUND, NO_FUNCTION, LOST, OLD_VERSION = 2, 3, 6, 13, 15, 25  # NVML_ERROR_* of nvml.h
DEVICE_GONE = {LOST, 16, 28}  # lost, needs a reset, not found by the driver
_LIBRARY_GONE = {1, 9, 18}  # uninitialised, driver not loaded, versions differ

_REASONS = {
    3: "not supported by this device",
    4: "no permission: run as root, or ask for access to this counter",
    6: "not found by the NVIDIA driver",
    9: "the NVIDIA driver is not loaded",
    12: "no NVIDIA driver here: libnvidia-ml.so.1 was not found or could not be loaded",
    13: "the installed NVIDIA driver is too old for this query",
    15: "the GPU is lost: it fell off the bus or was reset",
    16: "the GPU needs a reset",
    18: "driver/library version mismatch: reboot, or reload the NVIDIA kernel module",
    28: "no GPU was found by the NVIDIA driver",
}

# NVML is one state for the whole process, and so are its gate and what happens at exit and at fork (end of this file).
_gate = threading.RLock()
_opened: set[Library] = set()
_forking = threading.local()
_inherited: str | None = None  # why a forked child leaves NVML alone


class Library:
    """The library, opened at the first query and closed at the end of the process, or by :meth:`close`.

    A process that was forked after NVML was opened answers n/a: the driver's files would be shared with the parent.

    Args:
        clock: seconds, for the time between two tries at something lost.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pynvml: ModuleType | None = None
        self._open = False
        self._closed: str | None = None  # why it stays closed
        self._failed = Answer()
        self._retry_at = 0.0
        self._handles: dict[str, Any] = {}
        self._gone: dict[str, tuple[float, Answer]] = {}

    def query(self, function: str, *args: Any, device: str | None = None, **kwargs: Any) -> Answer:
        """Call one function of pynvml, on a device when its key is given."""
        with _gate:
            try:
                unready = self._unready()
                if unready is not None:
                    return unready
                answer = (
                    self._call(function, args, kwargs) if device is None else self._on(device, function, args, kwargs)
                )
                if answer.code in _LIBRARY_GONE:
                    self._fail(answer)
                return answer
            finally:
                if self._closed is not None:  # closed by another thread while this call hung
                    self._shut()

    def close(self, timeout: float = 2.0) -> bool:
        """Shut NVML down for good; a call that hangs for longer than ``timeout`` shuts it down when it returns.

        Returns:
            Whether NVML is shut down now.
        """
        self._closed = self._closed or "NVML was closed"
        if not _gate.acquire(timeout=timeout):
            return False
        try:
            self._shut()
        finally:
            _gate.release()
        return True

    def _unready(self) -> Answer | None:
        if self._closed is not None or _inherited is not None:
            return Answer(reason=self._closed or _inherited)
        if self._open:
            return None
        if self._failed.reason is not None and self._clock() < self._retry_at:
            return self._failed
        try:
            import pynvml
        except ImportError:
            self._fail(Answer(reason="the package nvidia-ml-py is not installed: pip install nvidia-ml-py"))
            return self._failed
        self._pynvml = pynvml
        answer = self._call("nvmlInit", (), {})
        if answer.reason is not None:
            self._fail(answer)
            return self._failed
        self._open, self._failed = True, Answer()
        _opened.add(self)
        return None

    def _call(self, function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        try:
            return Answer(getattr(self._pynvml, function)(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - whatever pynvml raises becomes a reason that is shown
            code = getattr(error, "value", None)
            known = isinstance(code, int)
            reason = (
                _REASONS.get(code, f"NVML: {error}") if isinstance(code, int) else f"{type(error).__name__}: {error}"
            )
            return Answer(reason=reason, code=code if known else None)

    def _on(self, key: str, function: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
        gone = self._gone.get(key)
        if gone is not None and self._clock() < gone[0]:
            return gone[1]
        answer = self._handle(key)
        if answer.reason is None:
            answer = self._call(function, (answer.value, *args), kwargs)
            if answer.code in {INVALID, NOT_FOUND}:  # a MIG instance that was made anew has another handle
                self._handles.pop(key, None)
        elif gone is not None and answer.code not in _LIBRARY_GONE:
            answer = gone[1]  # still gone; the first reason says more than "not found"
        if answer.code in DEVICE_GONE:
            self._handles.pop(key, None)
            self._gone[key] = (self._clock() + RETRY_DEVICE_S, answer)
        else:
            self._gone.pop(key, None)
        return answer

    def _handle(self, key: str) -> Answer:
        if key in self._handles:
            return Answer(self._handles[key])
        if key.startswith("index:"):
            found = self._call("nvmlDeviceGetHandleByIndex", (int(key[6:]),), {})
        else:
            found = self._call("nvmlDeviceGetHandleByUUID", (key,), {})
            if found.code in DEVICE_GONE:  # NVML says so when *any* GPU is lost: look at each one
                found = self._search(key, found)
        if found.reason is None:
            self._handles[key] = found.value
        return found

    def _search(self, uuid: str, failed: Answer) -> Answer:
        for index in range(self._call("nvmlDeviceGetCount", (), {}).value or 0):
            found = self._call("nvmlDeviceGetHandleByIndex", (index,), {})
            if found.reason is None and self._call("nvmlDeviceGetUUID", (found.value,), {}).value == uuid:
                return found
        return failed

    def _fail(self, answer: Answer) -> None:
        self._failed, self._retry_at = answer, self._clock() + RETRY_LIBRARY_S
        self._shut()

    def _shut(self) -> None:
        self._handles.clear()
        self._gone.clear()
        if self._open:
            self._open = False
            _opened.discard(self)
            self._call("nvmlShutdown", (), {})


@atexit.register
def _close_all() -> None:
    for library in list(_opened):
        library.close(timeout=1.0)


def _before_fork() -> None:
    _forking.held = _gate.acquire(timeout=1.0)  # no call in flight, unless one hangs


def _after_fork_in_parent() -> None:
    if _forking.held:
        _gate.release()


def _after_fork_in_child() -> None:
    global _gate, _inherited
    _gate = threading.RLock()
    if _opened:  # a shutdown here would go through files shared with the parent, and take its session away
        _inherited = "this process was forked after NVML was opened: start a fresh one instead"
    for library in _opened:
        library._open = False
    _opened.clear()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
