"""Whole start-up configurations by name, some with hot knobs: for the panel, for code, to paste as ``vllm serve``."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from workbench.config import EngineConfig, Knobs, parse
from workbench.errors import InputError
from workbench.i18n import phrase


@dataclass(frozen=True)
class Preset:
    """A start-up configuration.

    Attributes:
        name: short, for code.
        title: for a list.
        description: what it is for, and where its numbers come from.
        fields: fields of :class:`workbench.config.EngineConfig`; what is left out is as by default.
        changes: hot knobs to turn once the engine runs, for :meth:`workbench.Workbench.knobs`; most need none.
    """

    name: str
    title: str
    description: str
    fields: Mapping[str, Any]
    changes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def config(self) -> EngineConfig:
        """The configuration."""
        return parse(EngineConfig, dict(self.fields), where=f"preset {self.name}")

    @property
    def knobs(self) -> Knobs:
        """All knobs that its engine is to run under."""
        envelope = self.config.envelope
        return envelope.check(envelope.defaults.replace(**self.changes))


_PRESETS = (
    Preset(
        "laptop",
        "laptop",
        "The demo's engine: SmolLM2, a real model, on one CPU core; the budget ceiling takes any of its prompts in "
        "one step.",
        MappingProxyType(
            {"model": "smollm2", "max_model_len": 4096, "max_num_batched_tokens": 8192, "max_num_seqs": 32}
        ),
    ),
    Preset(
        "laptop-long",
        "long context on a laptop",
        "32K prompts without a GPU: a shrunk model with made-up weights (its output is noise), prefilled in about 30 s "
        "on one core.",
        MappingProxyType(
            {"model": "tiny-long", "max_model_len": 32768, "max_num_batched_tokens": 32768, "max_num_seqs": 32}
        ),
    ),
    Preset(
        "thrash",
        "thrashing KV pool",
        "A KV pool of 33 blocks of 32 tokens (vLLM keeps one of 34 for itself), too small for eight requests. The knob "
        "reserve_full goes off, so that they take the blocks from each other; on, it would hide that.",
        MappingProxyType(
            {
                "model": "smollm2",
                "max_model_len": 1024,
                "max_num_batched_tokens": 512,
                "max_num_seqs": 8,
                "block_size": 32,
                "kv_cache_mib": 64,
                "extra_args": ("--num-gpu-blocks-override", "34"),
            }
        ),
        MappingProxyType({"reserve_full": False}),
    ),
    Preset(
        "article",
        "article (4 GPUs)",
        "The article's reference command: Llama-3.1-70B on four GPUs, memory share 0.90, 32K context, budget 2,048, "
        "128 sequences, blocks of 16.",
        MappingProxyType(
            {
                "model": "meta-llama/Llama-3.1-70B-Instruct",
                "tensor_parallel_size": 4,
                "gpu_memory_utilization": 0.90,
                "kv_cache_mib": None,  # the memory share decides
                "max_model_len": 32768,
                "max_num_batched_tokens": 2048,
                "max_num_seqs": 128,
                "block_size": 16,
                "enable_prefix_caching": True,
                "enforce_eager": False,
            }
        ),
    ),
    Preset(
        "vllm",
        "vLLM defaults",
        "What vllm serve 0.32 takes by itself for SmolLM2 on a CPU or a GPU below 70 GiB: budget 2,048, whole context, "
        "prefix cache, compilation (a start takes about 2 min on a CPU); 128 sequences as on a CPU (256 on a GPU), and "
        "its memory share of 0.92.",
        # vllm/engine/arg_utils.py (get_batch_defaults) and vllm/config/cache.py of vLLM 0.32.0.
        MappingProxyType(
            {
                "model": "smollm2",
                "dtype": "auto",
                "max_model_len": 8192,
                "max_num_batched_tokens": 2048,
                "max_num_seqs": 128,
                "kv_cache_mib": None,
                "enable_prefix_caching": True,
                "enforce_eager": False,
            }
        ),
    ),
)


def presets() -> Mapping[str, Preset]:
    """All presets by name, the default first."""
    return MappingProxyType({one.name: one for one in _PRESETS})


def preset(name: str) -> Preset:
    """One preset.

    Raises:
        InputError: there is none of this name.
    """
    known = presets()
    if name not in known:
        near = difflib.get_close_matches(name, known, 1)
        fix = phrase("did you mean {name}?", name=near[0]) if near else phrase("choose one of these")
        raise InputError("preset", name, phrase("one of {names}", names=", ".join(known)), fix)
    return known[name]
