"""GPUs and MIG instances through NVML: what is there, its memory, what its processes use, its gauges.

Tested with the real ``pynvml`` against a stub ``libnvidia-ml.so.1``; not run on a GPU.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from typing import Any

from workbench.telemetry.answers import NOT_AVAILABLE, Answer, Device, DeviceMemory
from workbench.telemetry.nvml import DEVICE_GONE, NO_FUNCTION, NOT_FOUND, NOT_SUPPORTED, OLD_VERSION, Library
from workbench.telemetry.reading import Reading

_MEMORY_V2 = 0x02000028  # nvmlMemory_v2 of nvml.h: size of the struct (40) and its version (2)
_INTEGRATED = re.compile(r"\b(GB10|Thor|Orin|Xavier|Tegra)\b", re.IGNORECASE)  # GPUs without memory of their own
_ADDRESSING_ATS = 2  # NVML_DEVICE_ADDRESSING_MODE_ATS: the GPU walks the host's page tables


class Nvml(Library):
    """NVML as the workbench uses it; nothing is opened before the first question.

    Args:
        clock: seconds, for the time between two tries at something lost.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._unified: dict[str, bool] = {}
        self._v1: set[str] = set()  # devices whose driver knows only the older memory call

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
            mig_mode = "off" if mode.code in {NOT_SUPPORTED, NO_FUNCTION} else mode.text
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
            if handle.code == NOT_FOUND:
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

    def memory(self, key: str) -> DeviceMemory:
        """Read the memory of a device (v2, which tells what is reserved; v1 on an old driver)."""
        version, answer = 2, Answer(code=OLD_VERSION, reason="")
        if key not in self._v1:
            answer = self.query("nvmlDeviceGetMemoryInfo", device=key, version=_MEMORY_V2)
        if answer.code in {NOT_SUPPORTED, NO_FUNCTION, OLD_VERSION}:
            first, version, answer = answer, 1, self.query("nvmlDeviceGetMemoryInfo", device=key)
            if answer.reason is None and first.code != NOT_SUPPORTED:
                self._v1.add(key)
        if answer.code == NOT_SUPPORTED or (answer.reason is None and not answer.value.total):
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
            if name.code in DEVICE_GONE:
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
        if heat.code in {NO_FUNCTION, OLD_VERSION}:
            heat = ask("nvmlDeviceGetTemperature", 0)
        return {
            "gpu_percent": busy.pick(lambda u: u.gpu),
            "memory_percent": busy.pick(lambda u: u.memory),
            "power_w": ask("nvmlDeviceGetPowerUsage").pick(lambda mw: mw / 1000),
            "temperature_c": heat,
            "sm_mhz": ask("nvmlDeviceGetClockInfo", 1),
            "memory_mhz": ask("nvmlDeviceGetClockInfo", 2),
        }
