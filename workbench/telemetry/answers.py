"""What NVML answers: a value or a reason, a device, the memory of a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workbench.telemetry.reading import Reading, na

NOT_AVAILABLE = {2**32 - 1, 2**64 - 1}  # NVML's own marks of "no value"


@dataclass(frozen=True, slots=True)
class Answer:
    """What one NVML query came to.

    Attributes:
        value: the value; None when there is a reason.
        reason: why there is no value; None when there is one.
        code: NVML's error number, if it came from NVML.
    """

    value: Any = None
    reason: str | None = None
    code: int | None = None

    @property
    def text(self) -> str:
        """The value, or ``n/a (reason)``."""
        return str(self.value) if self.reason is None else na(self.reason)

    def pick(self, get: Callable[[Any], Any]) -> Answer:
        """Take a part of the value; a part that NVML marks as not available becomes a reason."""
        if self.reason is not None:
            return self
        value = get(self.value)
        if isinstance(value, int) and value in NOT_AVAILABLE:
            return Answer(reason="the driver does not report it")
        return Answer(value)

    def reading(self) -> Reading:
        """Turn an answer in bytes into a reading."""
        return Reading(int(self.value)) if self.reason is None else Reading.missing(self.reason)


@dataclass(frozen=True)
class Device:
    """A GPU, or one MIG instance of it, as it was when it was listed.

    Attributes:
        key: what it is found by in every query: its UUID, or ``index:N`` when the UUID is not given out.
        label: short name for charts, in NVML's own order: ``nvml:0``, ``nvml:0/mig1``.
        index: NVML's index of the GPU (of the parent, for a MIG instance).
        uuid: UUID, or None with the reason in ``notes``.
        name: product name, or ``n/a (reason)``.
        total: all of its memory.
        mig_mode: ``on``, ``off`` or ``n/a (reason)``; ``instance`` for a MIG instance.
        migs: its MIG instances.
        instance_ids: GPU instance and compute instance of a MIG instance.
        unified: it has no memory of its own and works in the host's.
        notes: what could not be read, and why.
    """

    key: str
    label: str
    index: int
    uuid: str | None
    name: str
    total: Reading
    mig_mode: str = "off"
    migs: tuple[Device, ...] = ()
    instance_ids: tuple[int, int] | None = None
    unified: bool = False
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeviceMemory:
    """Memory of a device. With v2 ``used`` leaves out what the driver reserves, with v1 it holds it too.

    Attributes:
        total: all of it.
        reserved: held back by driver and firmware (v2 only).
        free: not in use.
        used: in use by all processes of the machine.
        version: of the NVML call that answered, 2 or 1; 0 when none did.
    """

    total: Reading
    reserved: Reading
    free: Reading
    used: Reading
    version: int
