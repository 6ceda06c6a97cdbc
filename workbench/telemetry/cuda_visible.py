"""Which GPUs a CUDA process sees, and in which order: ``CUDA_VISIBLE_DEVICES`` resolved to UUIDs.

NVML lists every GPU in the order of the PCI bus and does not look at the variable, CUDA does. The rules are those of
NVIDIA's documentation; they were tested on made-up device lists, and not run on a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from workbench.telemetry.answers import Device

VARIABLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"
_ONE_MIG = "CUDA uses one MIG instance a process and hides the GPUs without MIG"


@dataclass(frozen=True)
class Visible:
    """What a CUDA process sees.

    Attributes:
        devices: GPUs and MIG instances; the position is CUDA's own number.
        notes: what was left out, and what is a guess.
    """

    devices: tuple[Device, ...]
    notes: tuple[str, ...] = ()


def visible(devices: Sequence[Device], environ: Mapping[str, str]) -> Visible:
    """Resolve the variable of ``environ`` against NVML's list of devices."""
    text = environ.get(VARIABLE)
    found: list[Device] = list(devices)
    notes: list[str] = []
    if text is not None:
        found, notes = _listed(devices, [part.strip() for part in text.split(",")])
    by_number = text is None or not text.strip().startswith(("GPU-", "MIG-"))
    if by_number and len({d.name for d in devices}) > 1 and environ.get(ORDER) != "PCI_BUS_ID":
        notes.append(f"the order is a guess: the GPUs differ and {ORDER} is not PCI_BUS_ID; name them by UUID")
    found, mig_notes = _with_mig(found)
    return Visible(tuple(found), tuple(notes + mig_notes))


def _listed(devices: Sequence[Device], parts: list[str]) -> tuple[list[Device], list[str]]:
    if parts == [""]:
        return [], [f"{VARIABLE} is empty: CUDA sees no GPU"]
    kind = parts[0][:4] if parts[0][:4] in {"GPU-", "MIG-"} else ""
    found: list[Device] = []
    for part in parts:
        match = _named(devices, part, kind)
        if isinstance(match, str):  # CUDA stops at the first entry that it does not know
            return found, [f"{VARIABLE}: {part!r} {match}; this entry and those after it are ignored"]
        if match in found:
            return [], [f"{VARIABLE}: {part!r} is there twice: CUDA sees no GPU"]
        found.append(match)
    return found, []


def _named(devices: Sequence[Device], part: str, kind: str) -> Device | str:
    """Find the device that one entry names, or say why there is none."""
    if kind == "GPU-":
        near = [d for d in devices if part.startswith(kind) and (d.uuid or "").startswith(part)]
    elif kind == "MIG-":
        near = [mig for d in devices for mig in d.migs if part.startswith(kind) and _is_mig(part, d, mig)]
    else:
        number = re.match(r"[+-]?\d+", part)  # as CUDA's own strtol: "1a" is 1
        near = [d for d in devices if number and d.index == int(number.group())]
    if len(near) == 1:
        return near[0]
    return "names several devices" if near else "names no device here"


def _is_mig(part: str, parent: Device, mig: Device) -> bool:
    if (mig.uuid or "").startswith(part):
        return True
    gpu, compute = mig.instance_ids or (None, None)  # the older form, MIG-<UUID of the GPU>/<instance>/<instance>
    return part == f"MIG-{parent.uuid}/{gpu}/{compute}"


def _with_mig(found: list[Device]) -> tuple[list[Device], list[str]]:
    """Apply CUDA's limits on MIG: instances stand for their GPU, only one is used, and it hides all else."""
    notes = [f"{d.label}: MIG is on and no instance can be used" for d in found if d.mig_mode == "on" and not d.migs]
    migs = [mig for d in found for mig in (d.migs if d.mig_mode == "on" else (d,)) if mig.mig_mode == "instance"]
    if not migs:
        return [d for d in found if d.mig_mode != "on"], notes
    if len(migs) > 1 or any(d.mig_mode not in {"on", "instance"} for d in found):
        notes.append(f"only {migs[0].label} is used: {_ONE_MIG}")
    return migs[:1], notes
