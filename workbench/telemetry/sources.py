"""Device memory as sources for the sampler, and the set of sources that fits an engine."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from workbench.telemetry.answers import Device
from workbench.telemetry.cgroup import cgroup_of
from workbench.telemetry.cuda_visible import visible
from workbench.telemetry.devices import Nvml
from workbench.telemetry.host import CgroupMemory, HostMemory, Pids, ProcessPss, ProcessRss
from workbench.telemetry.reading import Every, Reading, Source

Baseline = Mapping[str, Reading]  # ``used`` of each device before the engine started, by the device's key


@dataclass(frozen=True)
class DeviceUsed:
    """``used`` or ``reserved`` of a device: of all processes of the machine together."""

    nvml: Nvml
    device: Device
    field: Literal["used", "reserved"] = "used"

    @property
    def name(self) -> str:
        """What the line is called."""
        return f"{self.device.label} {self.field}"

    def read(self) -> Reading:
        """Ask NVML."""
        memory = self.nvml.memory(self.device.key)
        return memory.used if self.field == "used" else memory.reserved


@dataclass(frozen=True)
class DeviceEngine:
    """What the engine took of a device: ``used`` less a baseline from before its start.

    This is right in containers too, where NVML knows only the host's pids, as long as no other process takes or
    gives back memory of the device.
    """

    nvml: Nvml
    device: Device
    baseline: Reading

    @property
    def name(self) -> str:
        """What the line is called."""
        return f"{self.device.label} engine"

    def read(self) -> Reading:
        """Ask NVML and take the baseline off."""
        if self.baseline.bytes is None:
            return Reading.missing(f"no baseline from before the start: {self.baseline.note}")
        used = self.nvml.memory(self.device.key).used
        if used.bytes is None:
            return used
        if used.bytes < self.baseline.bytes:
            return Reading.missing("less is used than before the start: another process gave memory back")
        return Reading(used.bytes - self.baseline.bytes)


@dataclass(frozen=True)
class Absent:
    """A line for something that is not there, with the reason."""

    name: str
    reason: str

    def read(self) -> Reading:
        """Answer the reason."""
        return Reading.missing(self.reason)


def cuda_devices(nvml: Nvml, environ: Mapping[str, str] | None = None) -> tuple[tuple[Device, ...], tuple[str, ...]]:
    """List the devices that an engine with this environment sees, in CUDA's order, and what there is to say."""
    listed = nvml.devices()
    if listed.reason is not None:
        return (), (listed.reason,)
    seen = visible(listed.value, os.environ if environ is None else environ)
    return seen.devices, seen.notes


def baseline(nvml: Nvml, devices: Sequence[Device]) -> dict[str, Reading]:
    """Read ``used`` of each device; to be done before the engine starts."""
    return {device.key: nvml.memory(device.key).used for device in devices}


def host_sources(pids: Pids, pss_every_s: float | None = None) -> list[Source]:
    """Sources of any engine: what its processes hold, what the machine has left, what the cgroup uses.

    The exact memory of the processes (PSS) is read only when asked for: it takes long, and disturbs what it reads.
    """
    found: list[Source] = [ProcessRss("host engine rss", pids), HostMemory()]
    if pss_every_s is not None:
        found.append(Every(ProcessPss("host engine pss", pids), pss_every_s))
    cgroup = cgroup_of()
    if cgroup is not None and cgroup.limit is not None:
        found += [CgroupMemory(cgroup), Every(CgroupMemory(cgroup, "limit"), 1.0)]
    return found


def device_sources(
    nvml: Nvml, environ: Mapping[str, str] | None = None, before: Baseline | None = None
) -> list[Source]:
    """Sources of an engine on CUDA devices.

    A GPU that works in the host's memory keeps its ``n/a`` line and gets one of the host's memory that says so.
    """
    devices, notes = cuda_devices(nvml, environ)
    if not devices:
        return [Absent("nvml used", "; ".join(notes) or "CUDA sees no GPU")]
    found: list[Source] = []
    for device in devices:
        found.append(DeviceUsed(nvml, device))
        if device.unified:
            found.append(HostMemory(f"host used (unified memory of {device.label})", "used"))
        else:
            found.append(Every(DeviceUsed(nvml, device, "reserved"), 1.0))
        if before is not None:
            nothing = Reading.missing("this device was not there")
            found.append(DeviceEngine(nvml, device, before.get(device.key, nothing)))
    return found
