"""From a configuration to what a simulation needs: sizes of the model, time of a step, room for KV blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from workbench.architecture import Architecture
from workbench.config import EngineConfig
from workbench.engine.dtype import fitted
from workbench.errors import ConfigError, InputError, ModelError
from workbench.i18n import phrase
from workbench.models.architecture import from_config, known_models, named
from workbench.models.folder import read_config
from workbench.simulate.choose_step_time import step_time_of
from workbench.simulate.job import Activation, SimJob, Swap
from workbench.simulate.memory import BLOCK, UTILISATION, Memory
from workbench.simulate.presets import Device, device
from workbench.simulate.steptime import StepTime
from workbench.simulated_config import SimulatedConfig
from workbench.units import GIB, MIB

_CPU_BLOCK = 128  # vLLM's default there
_COPY_SHARE = 0.8  # of PCIe's rate that copies from pinned memory reach; assumed
_SHORT = {"smollm2": "smollm2-135m"}


@dataclass(frozen=True)
class Setup:
    """What is known of a simulated engine before anything is played on it.

    Attributes:
        config: as it was asked for.
        architecture: sizes of the model; None where nobody needs them.
        device: one of its GPUs; None is this machine's processor, known by its calibration alone.
        step_time: how long steps take.
        memory: of one GPU; None where it is not known.
        blocks: KV blocks.
        block_size: tokens in one.
        swap: where preempted requests go.
    """

    config: SimulatedConfig
    architecture: Architecture | None
    device: Device | None
    step_time: StepTime
    memory: Memory | None
    blocks: int
    block_size: int
    swap: Swap | None

    def job(self, **fields: Any) -> SimJob:
        """A job on this engine; ``fields`` are those of :class:`SimJob` that are not the engine's."""
        c, memory = self.config, self.memory
        activation = most = None
        if memory is not None and self.device is not None:
            activation, most = activation_of(memory), memory.largest_step(c.max_num_batched_tokens)
        ours: dict[str, Any] = {
            "number": 0,
            "step_time": dict(self.step_time.spec()),
            "budget": c.max_num_batched_tokens,
            "seqs": c.max_num_seqs,
            "max_model_len": c.max_model_len,
            "blocks": self.blocks,
            "block_size": self.block_size,
            "prefix_cache": c.enable_prefix_caching,
            "ahead": c.ahead,
            "depth": max(c.pipeline_parallel_size, 2 if c.ahead else 1),
            "scheduling_policy": c.scheduling_policy,
            "swap": self.swap,
            "most_step_tokens": most,
            "activation": activation,
            **getattr(self.step_time, "delays", {}),
        }
        return SimJob(**{**ours, **fields})

    @property
    def label(self) -> str:
        """The step-time model and its measured error, or "uncalibrated": what stands beside every number."""
        if not self.step_time.calibrated:
            return f"{self.step_time.name}, uncalibrated"
        told = self.step_time.describe()
        return f"{self.step_time.name}, {told.get('label') or 'calibrated'}"

    def describe(self) -> dict[str, Any]:
        """Plain data for a run's metadata."""
        memory, budget = self.memory, self.config.max_num_batched_tokens
        return {
            "step_time": dict(self.step_time.describe()),
            "step_time_label": self.label,
            "gpu": self.device.name if self.device else None,
            "gpus": self.config.gpus,
            "kv_blocks": self.blocks,
            "block_size": self.block_size,
            "memory": None
            if memory is None
            else [{"name": s.name, "bytes": s.bytes, "origin": s.origin} for s in memory.shares(budget)],
            "memory_warning": memory.warning(budget, self.config.max_model_len) if memory is not None else None,
            "swap": None
            if self.swap is None
            else {"blocks": self.swap.blocks, "out_s": self.swap.out_s, "in_s": self.swap.in_s, "label": "estimate"},
        }


def set_up(
    config: SimulatedConfig,
    *,
    step_time: StepTime | None = None,
    memory: Memory | None = None,
    blocks: int | None = None,
) -> Setup:
    """Look everything up.

    Args:
        config: start-up fields.
        step_time: in place of the model that the configuration names.
        memory: in place of what is counted.
        blocks: KV blocks, in place of what memory leaves.

    Raises:
        ModelError: the sizes of the model are not known.
        ConfigError: a field cannot be, such as NVLink on a GPU without.
        InputError: the GPU is not known, the model does not fit, or a calibration or package is missing.
    """
    on_cpu = config.gpu.strip().lower() == "cpu"
    gpu = None if on_cpu else _linked(device(config.gpu), config)
    sizes = _architecture(config.model, needed=gpu is not None)
    size = config.block_size or (_CPU_BLOCK if on_cpu else BLOCK)
    weight = 1.0 if config.quantization in ("fp8", "int8") else 4.0 if config.dtype == "float32" else 2.0
    if memory is None and gpu is not None and sizes is not None:
        memory = Memory.of(
            sizes,
            gpu,
            config.tensor_parallel_size,
            config.pipeline_parallel_size,
            seqs=config.max_num_seqs,
            utilisation=config.gpu_memory_utilization or UTILISATION,
            weight_bytes=weight,
            block_size=size,
            graphs=not config.enforce_eager,
            pool_bytes=config.kv_cache_mib * MIB if config.kv_cache_mib is not None else None,
        )
    blocks = blocks or config.kv_blocks or _overridden(config) or _blocks(config, memory, sizes, size)
    return Setup(
        config=config,
        architecture=sizes,
        device=gpu,
        step_time=step_time or step_time_of(config, sizes, gpu, weight),
        memory=memory,
        blocks=blocks,
        block_size=size,
        swap=_swap(config, memory, gpu),
    )


def activation_of(memory: Memory) -> Activation:
    """What a step needs while it runs, as the child computes it for each step."""
    if memory.fit is not None:
        return Activation(math.exp(memory.fit.intercept), memory.fit.exponent, 0.0, 0)
    return Activation(memory.token_bytes, 1.0, memory.request_bytes, memory.seqs)


def _architecture(model: str, needed: bool) -> Architecture | None:
    name = _SHORT.get(model.strip().lower(), model.strip().lower())
    if name in known_models():
        return named(name)
    folder = Path(model).expanduser()
    if (folder / "config.json").is_file():
        return from_config(read_config(folder), model)
    if not needed:
        return None
    expected = phrase("one of {names}, or a folder with config.json", names=", ".join(known_models()))
    raise ModelError("model", model, expected, phrase("choose one of these"))


def _linked(gpu: Device, config: SimulatedConfig) -> Device:
    if config.link == "nvlink" and gpu.nvlink is None:
        raise ConfigError("link", "nvlink", f"pcie, since {gpu.name} has no NVLink", "leave it at auto")
    return replace(gpu, nvlink=None) if config.link == "pcie" else gpu


def _overridden(config: SimulatedConfig) -> int | None:
    """Blocks that a scenario made for a live engine asks for among vLLM's other flags."""
    words = [part for word in config.extra_args for part in word.split("=", 1)]
    for flag, value in pairwise(words):
        if flag == "--num-gpu-blocks-override" and value.isdecimal():
            return int(value)
    return None


def _blocks(config: SimulatedConfig, memory: Memory | None, sizes: Architecture | None, block_size: int) -> int:
    if memory is not None:
        return memory.blocks(config.max_num_batched_tokens)
    if sizes is None:
        raise InputError("KV pool", "a model of unknown sizes", "the number of its blocks", "set kv_blocks")
    pool = config.kv_cache_mib or EngineConfig().kv_cache_mib or 0  # as a live engine on this processor starts
    width = 4 if fitted(config, "cpu").dtype == "float32" else 2
    return max(2, int(pool * MIB // (block_size * sizes.kv_bytes_per_token(width))))


def _swap(config: SimulatedConfig, memory: Memory | None, gpu: Device | None) -> Swap | None:
    """Each GPU writes its own share of a block, over its own link to the host."""
    if config.swap_gib is None:
        return None
    if memory is None or gpu is None:
        raise ConfigError("swap_gib", config.swap_gib, "a GPU, which swaps to its host", "leave it out")
    share = memory.block_size * memory.kv_token_bytes  # of a block, on one GPU
    seconds = share / (gpu.pcie * _COPY_SHARE)
    blocks = int(config.swap_gib * GIB // (share * config.gpus))
    return Swap(blocks, seconds, seconds, config.swap_overlap)
