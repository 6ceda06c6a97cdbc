"""NVML, the NVIDIA driver's management library; the only module that imports ``pynvml``.

Every call goes through :meth:`Nvml.query`, which never raises: it answers a value, or the reason why there is none.
A machine without GPU, driver or library is a normal state with a reason, and a lost GPU answers its reason until it
recovers. A GPU can be reset only when no process has NVML open on it: :meth:`Nvml.close` lets go of it.
Calls of all threads pass one gate, so that a shutdown never meets a call in flight.

Tested with the real ``pynvml`` against a stub ``libnvidia-ml.so.1``; not run on a GPU.
"""

from __future__ import annotations

import atexit
import os
import re
import threading
import time
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from workbench.telemetry.device import NOT_AVAILABLE, Answer, Device, DeviceMemory
from workbench.telemetry.reading import Reading

RETRY_LIBRARY_S = 5.0  # a library or driver that did not come up is tried again this often
RETRY_DEVICE_S = 1.0  # so is a lost device

_INVALID, _NOT_SUPPORTED, _NOT_FOUND, _NO_FUNCTION, _LOST, _VERSION = 2, 3, 6, 13, 15, 25
_DEVICE_GONE = {_LOST, 16, 28}  # lost, needs a reset, not found by the driver
_LIBRARY_GONE = {1, 9, 18}  # uninitialised, driver not loaded, versions differ
_INTEGRATED = re.compile(r"\b(GB10|Thor|Orin|Xavier|Tegra)\b", re.IGNORECASE)  # GPUs without memory of their own
_ADDRESSING_ATS = 2

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
_opened: set[Nvml] = set()
_forking = threading.local()
_inherited: str | None = None  # why a forked child leaves NVML alone


class Nvml:
    """NVML, opened at the first query and closed at the end of the process, or by :meth:`close`.

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
        self._unified: dict[str, bool] = {}
        self._v1: set[str] = set()

    # -- the one way in ------------------------------------------------------------------------------------------

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
            if answer.code in {_INVALID, _NOT_FOUND}:  # a MIG instance that was made anew has another handle
                self._handles.pop(key, None)
        elif gone is not None and answer.code not in _LIBRARY_GONE:
            answer = gone[1]  # still gone; the first reason says more than "not found"
        if answer.code in _DEVICE_GONE:
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
            if found.code in _DEVICE_GONE:  # NVML says so when *any* GPU is lost: look at each one
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
        self._v1.clear()
        if self._open:
            self._open = False
            _opened.discard(self)
            self._call("nvmlShutdown", (), {})

    # -- what is there -------------------------------------------------------------------------------------------

    def versions(self) -> dict[str, Answer]:
        """Versions of driver and library, or why there are none."""
        return {
            "driver": self.query("nvmlSystemGetDriverVersion"),
            "nvml": self.query("nvmlSystemGetNVMLVersion"),
        }

    def devices(self) -> Answer:
        """List all GPUs in NVML's order as a tuple of :class:`Device`; a GPU that cannot be read is listed too."""
        count = self.query("nvmlDeviceGetCount")
        return count.pick(lambda n: tuple(self._device(f"index:{i}", i, f"nvml:{i}") for i in range(n)))

    def _device(self, key: str, index: int, label: str) -> Device:
        uuid = self.query("nvmlDeviceGetUUID", device=key)
        name = self.query("nvmlDeviceGetName", device=key)
        key = key if uuid.value is None else uuid.value
        notes = [f"{what}: {a.text}" for what, a in (("uuid", uuid), ("name", name)) if a.reason is not None]
        mode = self.query("nvmlDeviceGetMigMode", device=key)
        if mode.reason is None:
            mig_mode = "on" if mode.value[0] else "off"
        else:  # a GPU that cannot do MIG says "not supported", an old driver has no such function
            mig_mode = "off" if mode.code in {_NOT_SUPPORTED, _NO_FUNCTION} else mode.text
        migs, mig_notes = self._migs(key, index, label) if mig_mode == "on" else ((), [])
        return Device(
            key=key,
            label=label,
            index=index,
            uuid=uuid.value,
            name=name.text,
            total=self.memory(key).total,
            mig_mode=mig_mode,
            migs=migs,
            unified=self._unified.get(key, False) or bool(_INTEGRATED.search(name.value or "")),
            notes=tuple(notes + mig_notes),
        )

    def _migs(self, parent: str, index: int, label: str) -> tuple[tuple[Device, ...], list[str]]:
        found, notes = [], []
        count = self.query("nvmlDeviceGetMaxMigDeviceCount", device=parent)
        if count.reason is not None:
            notes.append(f"MIG instances: {count.text}")
        for number in range(count.value or 0):
            handle = self.query("nvmlDeviceGetMigDeviceHandleByIndex", number, device=parent)
            if handle.code == _NOT_FOUND:
                continue  # a free place
            uuid = handle if handle.reason is not None else self.query("nvmlDeviceGetUUID", handle.value)
            if uuid.reason is not None:
                notes.append(f"MIG instance {number}: {uuid.text}")
                continue
            key = uuid.value
            ids = [self.query(f"nvmlDeviceGet{what}InstanceId", device=key).value for what in ("Gpu", "Compute")]
            found.append(
                Device(
                    key=key,
                    label=f"{label}/mig{number}",
                    index=index,
                    uuid=key,
                    name=self.query("nvmlDeviceGetName", device=key).text,
                    total=self.memory(key).total,
                    mig_mode="instance",
                    instance_ids=None if None in ids else (ids[0], ids[1]),
                )
            )
        return tuple(found), notes

    # -- what it measures ----------------------------------------------------------------------------------------

    def memory(self, key: str) -> DeviceMemory:
        """Read the memory of a device (v2, which tells what is reserved; v1 on an old driver)."""
        version, answer = 2, Answer(code=_VERSION, reason="")
        if key not in self._v1:
            wanted = getattr(self._pynvml, "nvmlMemory_v2", 0x02000028)
            answer = self.query("nvmlDeviceGetMemoryInfo", device=key, version=wanted)
        if answer.code in {_NOT_SUPPORTED, _NO_FUNCTION, _VERSION}:
            first, version, answer = answer, 1, self.query("nvmlDeviceGetMemoryInfo", device=key)
            if answer.reason is None and first.code != _NOT_SUPPORTED:
                self._v1.add(key)
        if answer.code == _NOT_SUPPORTED or (answer.reason is None and not answer.value.total):
            if self._is_unified(key):
                answer = Answer(reason="unified memory: this GPU works in the host's memory and has none of its own")
            elif answer.reason is None:
                answer = Answer(reason="the driver reports a memory of 0 bytes")
        if answer.reason is not None:
            none = answer.reading()
            return DeviceMemory(none, none, none, none, 0)
        old = Reading.missing("the installed NVIDIA driver counts it as used")
        return DeviceMemory(
            total=answer.pick(lambda m: m.total).reading(),
            reserved=answer.pick(lambda m: m.reserved).reading() if version == 2 else old,
            free=answer.pick(lambda m: m.free).reading(),
            used=answer.pick(lambda m: m.used).reading(),
            version=version,
        )

    def _is_unified(self, key: str) -> bool:
        """Whether a GPU that reports no memory works in the host's: by its name, or by its address translation."""
        if key not in self._unified:
            name = self.query("nvmlDeviceGetName", device=key)
            addressing = self.query("nvmlDeviceGetAddressingMode", device=key)
            if name.code in _DEVICE_GONE:
                return False
            self._unified[key] = bool(_INTEGRATED.search(name.value or "")) or addressing.value == _ADDRESSING_ATS
        return self._unified[key]

    def process_memory(self, key: str, pids: Iterable[int]) -> Reading:
        """Memory that some processes use on a device, where NVML knows their pids.

        In a container NVML lists the pids of the host, so none is found: take the device's ``used`` less a baseline.
        """
        wanted = set(pids)
        listed = self.query("nvmlDeviceGetComputeRunningProcesses", device=key)
        if listed.reason is not None:
            return listed.reading()
        ours = [p.usedGpuMemory for p in listed.value if p.pid in wanted]
        if not ours:
            return Reading.missing("NVML lists none of these pids; in a container it knows only the host's pids")
        if any(used is None or used in NOT_AVAILABLE for used in ours):
            return Reading.missing("the driver does not report the memory of single processes")
        return Reading(sum(ours))

    def gauges(self, key: str) -> dict[str, Answer]:
        """Utilisation, power, temperature and clocks; each one may be missing for itself."""

        def ask(function: str, *args: Any) -> Answer:
            return self.query(function, *args, device=key).pick(lambda value: value)

        busy = self.query("nvmlDeviceGetUtilizationRates", device=key)
        heat = ask("nvmlDeviceGetTemperatureV", 0)
        if heat.code in {_NO_FUNCTION, _VERSION}:
            heat = ask("nvmlDeviceGetTemperature", 0)
        return {
            "gpu_percent": busy.pick(lambda u: u.gpu),
            "memory_percent": busy.pick(lambda u: u.memory),
            "power_w": ask("nvmlDeviceGetPowerUsage").pick(lambda mw: mw / 1000),
            "temperature_c": heat,
            "sm_mhz": ask("nvmlDeviceGetClockInfo", 1),
            "memory_mhz": ask("nvmlDeviceGetClockInfo", 2),
        }


@atexit.register
def _close_all() -> None:
    for nvml in list(_opened):
        nvml.close(timeout=1.0)


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
    for nvml in _opened:
        nvml._open = False
    _opened.clear()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
