"""Devices to simulate: a GPU's published figures (``data/hardware.yaml``) and what kernels reach of them.

The efficiencies were fitted for this project to the kernels that aiconfigurator-core 0.12 has measured under vLLM 0.24
(A100: 0.14), operation by operation: matrix products in bf16, FlashAttention with head width 128, vLLM's own
all-reduce in CUDA graphs. ``error`` is the median error of the fitted matrix products; see ``steptime/tables.py`` for
whole steps. They are no calibration: that needs a run on the very machine.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from workbench import hardware
from workbench.errors import InputError

_TABLES = "fitted to kernels measured by aiconfigurator-core 0.12"


@dataclass(frozen=True, slots=True)
class Efficiency:
    """What kernels reach of a device's peaks, and what each of them costs whatever its size.

    Attributes:
        gemm: share of the dense peak that large matrix products reach.
        stream: share of the memory bandwidth with which weights are read.
        attention: share of the dense peak that attention over prompts reaches.
        kv: share of the memory bandwidth with which decodes read their KV cache.
        link: share of the link's bandwidth that an all-reduce reaches.
        gemm_s: of each matrix product, s.
        attention_s: of each attention call, s.
        reduce_s: of a small all-reduce, in one exchange, s.
        ring_s: of a large one, in two, s.
        error: median relative error of the fit; None where it was not fitted.
        source: where these come from.
    """

    gemm: float
    stream: float
    attention: float
    kv: float
    link: float
    gemm_s: float
    attention_s: float
    reduce_s: float
    ring_s: float
    error: float | None
    source: str


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU, or the CPU of a machine, as a roofline needs it.

    Attributes:
        key: how it is asked for.
        name: how people call it.
        flops: dense bf16, FLOP/s.
        memory: that the driver lists, bytes; datasheets print less for some and more for others.
        bandwidth: of that memory, bytes/s.
        processors: streaming multiprocessors, over which a kernel's tiles are dealt; 1 has no waves.
        nvlink: to others of its kind, bytes/s in one direction; None is none.
        pcie: to the host, and to others where there is no NVLink, bytes/s in one direction.
        fp8: how many times faster than bf16 it multiplies 8-bit floats; 1 is no faster.
        efficiency: what kernels reach of that.
        source: where the figures come from.
    """

    key: str
    name: str
    flops: float
    memory: float
    bandwidth: float
    processors: int
    nvlink: float | None
    pcie: float
    fp8: float
    efficiency: Efficiency
    source: str

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Device:
        """Take it from what :meth:`as_dict` gave."""
        return cls(**{**facts, "efficiency": Efficiency(**facts["efficiency"])})


# gemm, stream, attention, kv, link, then µs: matrix product, attention, one-shot and two-shot all-reduce; error.
_FITTED = {
    "h100-sxm": (0.86, 0.88, 0.68, 0.88, 0.68, 3.1, 12.2, 4.6, 8.9, 0.050),
    "h200": (0.86, 0.84, 0.68, 0.84, 0.68, 3.1, 12.0, 4.6, 8.0, 0.055),
    "a100-80gb-sxm": (0.83, 0.73, 0.59, 0.71, 0.61, 3.9, 6.7, 5.2, 11.6, 0.061),
    "b200": (0.75, 0.80, 0.56, 0.88, 0.57, 3.6, 11.5, 7.1, 13.6, 0.057),
    "l40s": (0.66, 0.77, 0.55, 0.83, 0.59, 2.0, 10.0, 5.3, 5.3, 0.073),
}
_LIKE = {"rtx-4090": "l40s"}  # the same generation (Ada), not measured
# Streaming multiprocessors: NVIDIA's architecture whitepapers of Hopper, Ampere, Ada and the L40S datasheet; for B200,
# what the driver reports for one GPU of two dies.
_PROCESSORS = {"h100-sxm": 132, "h200": 132, "a100-80gb-sxm": 108, "b200": 148, "l40s": 142, "rtx-4090": 128}
# The datasheets print twice the bf16 figure for FP8, except for the A100, which has none: there FP8 weights are
# widened on the fly and save memory traffic only.
_FP8 = {"a100-80gb-sxm": 1.0}
_SHORT = {"h100": "h100-sxm", "a100": "a100-80gb-sxm", "4090": "rtx-4090", "rtx4090": "rtx-4090"}
# MiB that nvidia-smi lists as the total, ECC's share already taken.
_TOTAL_MIB = {
    "h100-sxm": 81559,
    "h200": 143771,
    "a100-80gb-sxm": 81920,
    "b200": 183359,
    "l40s": 46068,
    "rtx-4090": 24564,
}


def device(name: str) -> Device:
    """A GPU that can be simulated: "H100", "h200", "A100", "B200", "L40S", "RTX 4090".

    Raises:
        InputError: there are no figures of it.
    """
    found = hardware.gpu(_SHORT.get(name.strip().lower(), name))
    key = _LIKE.get(found.key, found.key)
    if key not in _FITTED or found.key not in _PROCESSORS:
        known = ", ".join(sorted(_PROCESSORS))
        raise InputError("GPU", name, f"one of {known}", "add its efficiencies to workbench/simulate/presets.py")
    reached = _efficiency(key)
    if key != found.key:
        like = hardware.gpu(key).name
        reached = replace(reached, error=None, source=f"those of the {like}, of the same generation; not measured")
    return Device(
        key=found.key,
        name=found.name,
        flops=found.flops.value,
        memory=float(_TOTAL_MIB[found.key] << 20),
        bandwidth=found.bandwidth.value,
        processors=_PROCESSORS[found.key],
        nvlink=found.nvlink.value if found.nvlink else None,
        pcie=found.pcie.value,
        fp8=_FP8.get(found.key, 2.0),
        efficiency=reached,
        source=found.flops.source,
    )


def _efficiency(key: str) -> Efficiency:
    gemm, stream, attention, kv, link, call, attend, reduce, ring, error = _FITTED[key]
    us = 1e-6
    calls = (call * us, attend * us, reduce * us, ring * us)
    return Efficiency(gemm, stream, attention, kv, link, *calls, error, _TABLES)


def devices() -> tuple[str, ...]:
    """Keys of the GPUs that can be simulated."""
    return tuple(key for key in hardware.gpus() if key in _PROCESSORS)


def spread(efficiency: Efficiency) -> tuple[Efficiency, Efficiency]:
    """The best and the worst that kernels reach on any device that was measured: how far an unmeasured one may be off.

    Returns:
        Optimistic and pessimistic efficiencies; each at least as good and as bad as the one given.
    """
    every = [efficiency, *(_efficiency(key) for key in _FITTED)]
    shares = ("gemm", "stream", "attention", "kv", "link")
    calls = ("gemm_s", "attention_s", "reduce_s", "ring_s")
    best = {name: max(getattr(one, name) for one in every) for name in shares}
    best |= {name: min(getattr(one, name) for one in every) for name in calls}
    worst = {name: min(getattr(one, name) for one in every) for name in shares}
    worst |= {name: max(getattr(one, name) for one in every) for name in calls}
    return replace(efficiency, **best), replace(efficiency, **worst)
