"""What a run needs to count FLOPs and name a peak, for its metadata (``meta["compute"]``)."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workbench import hardware
from workbench.architecture import Architecture
from workbench.errors import InputError
from workbench.machine import processor
from workbench.models import ModelFiles
from workbench.models.architecture import from_config
from workbench.models.cache import cache_root
from workbench.telemetry import Nvml, cuda_devices, peak


def peaks_folder() -> Path:
    """Where measured peaks are kept: beside the models, in the user's cache."""
    return cache_root().parent / "peaks"


def compute_facts(
    model: ModelFiles | None, label: str, *, devices: int = 1, gpu_name: str | None = None, again: bool = False
) -> dict[str, Any]:
    """Plain data about model and machine. Never raises; the first call on a machine takes seconds, later ones do not.

    Args:
        model: that the engine runs; None where it is not known.
        label: where the numbers come from: "live CPU", "live GPU", or anything else, which has no peak.
        devices: how many the engine computes on: tensor times pipeline parallel.
        gpu_name: what the driver calls them; by default NVML is asked for the first that CUDA sees.
        again: measure anew what is measured.

    Returns:
        ``architecture`` (see :class:`Architecture`), ``peak`` (``flops_per_s`` of all devices, ``source``),
        ``bandwidth`` (``bytes_per_s`` of all devices' memory, ``source``; only where it is published),
        ``host_bytes_per_s`` (``to_device``, ``to_host``, of one device, ``source``), each None where it is not known,
        and ``missing``: for each of these the reason. ``device`` names the processor or GPU.
    """
    facts: dict[str, Any] = {
        "architecture": None,
        "peak": None,
        "bandwidth": None,
        "host_bytes_per_s": None,
        "device": None,
        "missing": {},
    }
    steps: dict[str, Callable[[], dict[str, Any]]] = {
        "architecture": lambda: _architecture(model).as_dict(),
        "peak": lambda: _peak(facts, label, again),
    }
    if label == "live GPU":
        facts["device"] = gpu_name or _first_gpu(facts)
        steps["bandwidth"] = lambda: _bandwidth(facts)
        steps["host_bytes_per_s"] = lambda: _copies(facts, again)
    else:
        facts["missing"]["bandwidth"] = "nobody measured how fast this machine reads its memory"
        facts["missing"]["host_bytes_per_s"] = "no device memory to copy to: the KV cache lies in the host's memory"
        facts["device"] = processor() if label == "live CPU" else None
    for name, find in steps.items():
        try:
            facts[name] = find()
        except (InputError, peak.PeakError) as error:
            facts["missing"][name] = str(error)
        except Exception as error:  # noqa: BLE001  facts about a run must not cost the run
            facts["missing"][name] = f"{type(error).__name__}: {error}"
    for name, unit in (("peak", "flops_per_s"), ("bandwidth", "bytes_per_s")):
        if facts[name] and devices > 1:
            facts[name][unit] *= devices
            facts[name]["source"] += f", times {devices} devices"
    return facts


def _architecture(model: ModelFiles | None) -> Architecture:
    if model is None:
        raise peak.PeakError("the engine does not say which model it runs")
    config = model.config.get("text_config")  # a multimodal model: the text part is what prefill and decode run
    return from_config(config if isinstance(config, dict) else model.config, model.name)


def _peak(facts: dict[str, Any], label: str, again: bool) -> dict[str, Any]:
    if label == "live CPU":
        found = peak.matmul_peak(peak.engine_threads(), peaks_folder(), again=again)
        return {"flops_per_s": found.per_s, "source": found.source}
    if label != "live GPU":
        raise peak.PeakError(f"no device of ours computes in a run that is {label or 'of unknown origin'}")
    name = facts["device"] or ""
    published = hardware.gpu_of_driver(name)
    if published is not None:
        return {"flops_per_s": published.flops.value, "source": f"published, dense bf16: {published.flops.source}"}
    found = peak.matmul_peak(os.cpu_count() or 1, peaks_folder(), device="cuda", name=name or "GPU", again=again)
    return {"flops_per_s": found.per_s, "source": found.source}


def _bandwidth(facts: dict[str, Any]) -> dict[str, Any]:
    published = hardware.gpu_of_driver(facts["device"] or "")
    if published is None:
        raise peak.PeakError(f"no published figures of {facts['device'] or 'an unknown GPU'}")
    return {"bytes_per_s": published.bandwidth.value, "source": f"published: {published.bandwidth.source}"}


def _copies(facts: dict[str, Any], again: bool) -> dict[str, Any]:
    rates = peak.copy_rates(peaks_folder(), name=facts["device"] or "GPU", again=again)
    return {**rates, "source": "measured, pinned host memory"}


def _first_gpu(facts: dict[str, Any]) -> str | None:
    """Product name of the first GPU that CUDA sees."""
    nvml = Nvml()
    try:
        devices, notes = cuda_devices(nvml)
    finally:
        nvml.close()
    if devices:
        return devices[0].name
    facts["missing"]["device"] = "; ".join(notes) or "NVML lists no GPU"
    return None
