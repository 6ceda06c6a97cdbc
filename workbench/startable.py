"""What keeps a configuration from starting on this machine, as far as it can be told without starting it."""

from __future__ import annotations

import functools
import os
from dataclasses import dataclass
from pathlib import Path

from workbench.config import EngineConfig
from workbench.engine.command import Device, installed_device
from workbench.engine.probe.compat import installed_vllm
from workbench.errors import ConfigError, EngineStartError, InputError
from workbench.models import list_presets
from workbench.telemetry import Nvml, cuda_devices

_NODES = Path("/sys/devices/system/node")


@dataclass(frozen=True)
class Machine:
    """What an engine can run on here.

    Attributes:
        device: what the installed vLLM was built for.
        ranks: how many workers it can have, one a GPU or one a NUMA node; none if that is not known.
    """

    device: Device
    ranks: int | None


@functools.cache
def this_machine() -> Machine:
    """This machine, looked at once.

    Raises:
        EngineStartError: vLLM is not installed.
    """
    device = installed_device(installed_vllm())
    return Machine(device, _numa_nodes() if device == "cpu" else _gpus())


def _numa_nodes() -> int | None:
    """How many CPU ranks vLLM 0.32 can bind: each takes a node of its own (vllm/utils/ompmultiprocessing.py)."""
    if os.environ.get("VLLM_CPU_SIM_MULTI_NUMA", "0") != "0":
        return None
    return len(list(_NODES.glob("node[0-9]*"))) or None


def _gpus() -> int | None:
    nvml = Nvml()
    try:
        return len(cuda_devices(nvml)[0]) if nvml.devices().reason is None else None
    finally:
        nvml.close()


def hindrance(config: EngineConfig, machine: Machine | None = None) -> str | None:
    """Why this configuration cannot start, in one line; none if nothing is known to speak against it.

    Args:
        config: start-up fields.
        machine: where to start it; by default here.
    """
    try:
        _check(config, machine or this_machine())
    except (InputError, EngineStartError) as error:
        return str(error)
    return None


def _check(config: EngineConfig, machine: Machine) -> None:
    if not config.model.strip():
        raise ConfigError("model", config.model, "a preset, a folder or a hub id", "name one; the default is smollm2")
    if config.device not in ("auto", machine.device):
        raise ConfigError(
            "device", config.device, f"{machine.device}, which the installed vLLM was built for", "set device to auto"
        )
    ranks = config.tensor_parallel_size * config.pipeline_parallel_size
    if machine.ranks is not None and ranks > machine.ranks and config.distributed_executor_backend != "ray":
        there = "GPUs that CUDA sees" if machine.device == "cuda" else "NUMA nodes, of which each CPU worker takes one"
        raise ConfigError(
            "tensor_parallel_size times pipeline_parallel_size",
            f"{config.tensor_parallel_size} x {config.pipeline_parallel_size}",
            f"at most {machine.ranks}, the {there}",
            "lower them here; `vllm serve` can still be copied for a machine that has more",
        )
    if config.distributed_executor_backend == "ray" and machine.device == "cpu":
        raise ConfigError(
            "distributed_executor_backend and device",
            "ray on CPU",
            "GPUs, as vLLM's Ray executor spreads no CPU workers",
            "unset it here; `vllm serve` can still be copied for machines that have GPUs",
        )
    if config.kv_offloading_gib is not None and machine.device == "cpu":
        raise ConfigError(
            "kv_offloading_gib and device", f"{config.kv_offloading_gib:g} on CPU", "a GPU to offload from", "unset it"
        )
    positions = {preset.name: preset.max_positions for preset in list_presets()}.get(config.model)
    if positions is not None and config.max_model_len > positions:
        raise ConfigError(
            "max_model_len and model",
            f"{config.max_model_len} with {config.model}",
            f"at most {positions}, the positions of {config.model}",
            "lower max_model_len or choose another model",
        )
