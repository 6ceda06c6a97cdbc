"""Frozen configurations; the text of each field is its tooltip, its CLI help and its documentation.

``EngineConfig`` needs a restart for every change, ``Knobs`` act on the next scheduler step, ``Envelope``
is what a running engine allows its knobs, and ``SLO`` is the promise that stalls and goodput are held against.
"""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from workbench.errors import ConfigError
from workbench.frozen import Frozen, parse
from workbench.knobs import POLICIES, Envelope, Knobs, PolicyName

__all__ = ["POLICIES", "SLO", "EngineConfig", "Envelope", "Frozen", "Knobs", "PolicyName", "parse"]


def _flag(name: str | None, unit: str = "") -> dict[str, Any]:
    return {"flag": name, "unit": unit}


class EngineConfig(Frozen):
    """Start-up fields of a live engine; each one maps to one flag of ``vllm serve``."""

    model: str = Field(
        "smollm2",
        description="Preset name (smollm2, tiny-long), a local folder, or a hub id.",
        json_schema_extra=_flag("--model"),
    )
    device: Literal["auto", "cpu", "cuda"] = Field(
        "auto",
        description="What the engine runs on; auto takes what the installed vLLM was built for.",
        json_schema_extra=_flag(None),
    )
    dtype: Literal["auto", "bfloat16", "float16", "float32"] = Field(
        "auto",
        description="Data type of weights and activations; auto is the model's own, but float32 on a CPU that only "
        "emulates bfloat16.",
        json_schema_extra=_flag("--dtype"),
    )
    quantization: str | None = Field(
        None,
        description="Weight quantisation method, or none to follow the model's own config.",
        json_schema_extra=_flag("--quantization"),
    )
    max_model_len: int = Field(
        4096,
        ge=16,
        description="Longest prompt plus output of one request; also the largest chunk.",
        json_schema_extra=_flag("--max-model-len", "tokens"),
    )
    max_num_batched_tokens: int = Field(
        8192,
        ge=1,
        description="Token budget ceiling: most tokens in one step. The hot budget moves below it.",
        json_schema_extra=_flag("--max-num-batched-tokens", "tokens"),
    )
    max_num_seqs: int = Field(
        32,
        ge=1,
        description="Most requests running at once. The hot running cap moves below it.",
        json_schema_extra=_flag("--max-num-seqs", "requests"),
    )
    tensor_parallel_size: int = Field(
        1, ge=1, description="Devices that share each layer.", json_schema_extra=_flag("--tensor-parallel-size")
    )
    pipeline_parallel_size: int = Field(
        1,
        ge=1,
        description="Devices that share the stack of layers.",
        json_schema_extra=_flag("--pipeline-parallel-size"),
    )
    block_size: int | None = Field(
        None,
        description="Tokens in one KV block; none leaves it to vLLM (16 on CUDA, 128 on CPU).",
        json_schema_extra=_flag("--block-size", "tokens"),
    )
    gpu_memory_utilization: float | None = Field(
        None,
        gt=0,
        le=1,
        description="Share of device memory for weights, activation and KV pool; not used when the KV pool has a size.",
        json_schema_extra=_flag("--gpu-memory-utilization"),
    )
    kv_cache_mib: int | None = Field(
        1024,
        ge=1,
        description="Size of the KV pool; none lets vLLM take what its memory share leaves.",
        json_schema_extra=_flag("--kv-cache-memory-bytes", "MiB"),
    )
    kv_offloading_gib: float | None = Field(
        None,
        gt=0,
        description="Host memory for swapped-out KV blocks (CUDA only).",
        json_schema_extra=_flag("--kv-offloading-size", "GiB"),
    )
    enable_prefix_caching: bool = Field(
        False,
        description="Keep the KV blocks of finished prompts for later prompts with the same start.",
        json_schema_extra=_flag("--enable-prefix-caching"),
    )
    attention_backend: str | None = Field(
        None,
        description="Attention kernels (FLASH_ATTN, FLASHINFER, ...); none leaves it to vLLM.",
        json_schema_extra=_flag("--attention-backend"),
    )
    async_scheduling: bool | None = Field(
        None,
        description="Schedule the next step while one runs (two in flight); none leaves it to vLLM, off on CPU.",
        json_schema_extra=_flag("--async-scheduling"),
    )
    enforce_eager: bool = Field(
        True,
        description="Skip compilation and CUDA graphs: a CPU start takes a quarter of the time, a step a little more.",
        json_schema_extra=_flag("--enforce-eager"),
    )
    scheduling_policy: Literal["fcfs", "priority"] = Field(
        "fcfs",
        description="Order of vLLM's own waiting queue; the hot policy priority needs no such start.",
        json_schema_extra=_flag("--scheduling-policy"),
    )
    distributed_executor_backend: Literal["mp", "ray"] | None = Field(
        None,
        description="How workers are started; ray spreads one engine over several machines.",
        json_schema_extra=_flag("--distributed-executor-backend"),
    )
    port: int | None = Field(
        None, ge=1, le=65535, description="Port on 127.0.0.1; none takes a free one.", json_schema_extra=_flag("--port")
    )
    start_timeout_s: float = Field(
        600.0, gt=0, description="How long a start may take.", json_schema_extra=_flag(None, "s")
    )
    extra_args: tuple[str, ...] = Field(
        (), description="More flags of vllm serve, passed through as they are.", json_schema_extra=_flag(None)
    )

    @model_validator(mode="after")
    def _pairs(self) -> Self:
        if self.max_num_batched_tokens < self.max_num_seqs:
            raise ConfigError(
                "max_num_batched_tokens and max_num_seqs",
                f"{self.max_num_batched_tokens} < {self.max_num_seqs}",
                "a budget of at least one token per sequence",
                f"raise max_num_batched_tokens to {self.max_num_seqs} or lower max_num_seqs",
            )
        return self

    @property
    def envelope(self) -> Envelope:
        """What the hot knobs of an engine started with this configuration may be set to."""
        return Envelope(
            max_budget=self.max_num_batched_tokens,
            max_chunk=self.max_model_len,
            max_running=self.max_num_seqs,
            prefix_caching=self.enable_prefix_caching,
        )


class SLO(Frozen):
    """The latency promise that goodput and stalls are held against."""

    ttft_ms: float = Field(2000.0, gt=0, description="Longest time to first token.", json_schema_extra={"unit": "ms"})
    gap_ms: float = Field(
        200.0, gt=0, description="Longest token gap; a gap above it is a stall.", json_schema_extra={"unit": "ms"}
    )
    gap_percentile: float = Field(
        100.0,
        gt=0,
        le=100,
        description="Which percentile of a request's gaps must meet gap_ms; 100 is the worst gap.",
        json_schema_extra={"unit": "%"},
    )
