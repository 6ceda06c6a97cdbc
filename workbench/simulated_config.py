"""Start-up fields of a simulated engine: those of a live one, and the hardware that nobody has here.

:func:`engine_config` tells by the field ``engine`` which kind of engine is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from workbench.attached_config import AttachedConfig
from workbench.config import EngineConfig, parse
from workbench.errors import ConfigError, InputError

Link = Literal["auto", "nvlink", "pcie"]
StepTimeName = Literal["auto", "calibrated", "roofline", "tables"]

_GPUS = 8  # of the default model, which needs 131 GiB for its weights alone
_SIZED = {"model", "count", "tensor_parallel_size", "pipeline_parallel_size"}  # any of these, and nothing is assumed


class SimulatedConfig(EngineConfig):
    """Start-up fields of a simulated engine; each flag of ``vllm serve`` means what it means on a live one."""

    engine: Literal["simulated"] = Field("simulated", description="Nothing is computed: steps take modelled time.")
    model: str = Field(
        "llama-3.1-70b",
        description="A model whose sizes come with the workbench (llama-3.1-70b, qwen2.5-72b, deepseek-v3, "
        "qwen2.5-7b, smollm2-135m), a preset, or a local folder.",
        json_schema_extra={"flag": "--model", "unit": ""},
    )
    gpu: str = Field(
        "H100",
        description="Kind of GPU (H100, H200, A100, B200, L40S, RTX 4090), or cpu for this machine's processor.",
        json_schema_extra={"flag": None, "unit": ""},
    )
    count: int | None = Field(
        None,
        ge=1,
        le=64,
        description="GPUs; none is tensor times pipeline parallel. Alone, it is the tensor parallel size. Where "
        "neither these nor a model is given there are 8, as few GPUs hold the default model alone.",
        json_schema_extra={"flag": None, "unit": "GPUs"},
    )
    link: Link = Field(
        "auto",
        description="What the GPUs are joined by; auto takes NVLink where the GPU has it.",
        json_schema_extra={"flag": None, "unit": ""},
    )
    step_time: StepTimeName = Field(
        "auto",
        description="Step-time model; auto takes a calibration of this model on this machine if there is one, else "
        "the roofline, which is uncalibrated.",
        json_schema_extra={"flag": None, "unit": ""},
    )
    swap_gib: float | None = Field(
        None,
        gt=0,
        description="Host memory that preempted requests' KV is swapped to, in all; none is recompute, which is all "
        "that vLLM V1 does. An estimate.",
        json_schema_extra={"flag": None, "unit": "GiB"},
    )
    swap_overlap: bool = Field(
        False,
        description="Swap while the step computes; otherwise the step waits.",
        json_schema_extra={"flag": None, "unit": ""},
    )
    kv_blocks: int | None = Field(
        None,
        ge=2,
        description="KV blocks; none is what the GPU's memory leaves.",
        json_schema_extra={"flag": "--num-gpu-blocks-override", "unit": "blocks"},
    )
    pace: float | None = Field(
        None,
        gt=0,
        le=1000,
        description="Virtual seconds that pass in a second, so that a person can turn knobs in mid-run; none is as "
        "fast as can be.",
        json_schema_extra={"flag": None, "unit": "x"},
    )
    max_model_len: int = Field(
        16384,
        ge=16,
        description="Longest prompt plus output of one request; also the largest chunk.",
        json_schema_extra={"flag": "--max-model-len", "unit": "tokens"},
    )
    max_num_seqs: int = Field(
        256,
        ge=1,
        description="Most requests running at once. The hot running cap moves below it.",
        json_schema_extra={"flag": "--max-num-seqs", "unit": "requests"},
    )
    kv_cache_mib: int | None = Field(
        None,
        ge=1,
        description="Size of the KV pool on each GPU; none lets vLLM take what its memory share leaves.",
        json_schema_extra={"flag": "--kv-cache-memory-bytes", "unit": "MiB"},
    )
    enforce_eager: bool = Field(
        False,
        description="Skip CUDA graphs, which take memory; step-time models know no other difference.",
        json_schema_extra={"flag": "--enforce-eager", "unit": ""},
    )

    @model_validator(mode="before")
    @classmethod
    def _count_is_tensor_parallel(cls, data: Any) -> Any:
        """``count=8`` alone means eight GPUs that share each layer; so does nothing at all, for the default model."""
        if isinstance(data, dict) and not _SIZED & data.keys() and str(data.get("gpu")).strip().lower() != "cpu":
            return {**data, "tensor_parallel_size": _GPUS}
        if isinstance(data, dict) and data.get("count") and data.get("tensor_parallel_size") is None:
            stages = data.get("pipeline_parallel_size") or 1
            if isinstance(data["count"], int) and isinstance(stages, int) and not data["count"] % stages:
                return {**data, "tensor_parallel_size": data["count"] // stages}
        return data

    @model_validator(mode="after")
    def _adds_up(self) -> Self:
        product = self.tensor_parallel_size * self.pipeline_parallel_size
        if self.count is not None and self.count != product:
            raise ConfigError(
                "count, tensor_parallel_size and pipeline_parallel_size",
                f"{self.count}, {self.tensor_parallel_size} and {self.pipeline_parallel_size}",
                "as many GPUs as tensor times pipeline parallel",
                f"set count to {product}, or leave it out",
            )
        if self.gpu.strip().lower() == "cpu" and product > 1:
            fix = "leave count out, or set tensor_parallel_size and pipeline_parallel_size to 1"
            raise ConfigError("gpu and count", f"cpu and {product}", "one processor", fix)
        return self

    @property
    def gpus(self) -> int:
        """How many GPUs there are."""
        return self.tensor_parallel_size * self.pipeline_parallel_size

    @property
    def ahead(self) -> bool:
        """Whether the next step is planned while one runs; vLLM's default but on CPU and with a pipeline."""
        if self.async_scheduling is not None:
            return self.async_scheduling
        return self.gpu.strip().lower() != "cpu" and self.pipeline_parallel_size == 1


def engine_config(
    fields: Mapping[str, Any], *, where: str = "", error: type[InputError] = ConfigError
) -> EngineConfig | SimulatedConfig | AttachedConfig:
    """The configuration that start-up fields ask for: ``engine`` is "live" (also without), "simulated" or "attached".

    Args:
        fields: of :class:`EngineConfig`, :class:`SimulatedConfig` or :class:`AttachedConfig`.
        where: prefix of a field's name in an error.
        error: the class of error to raise.

    Raises:
        InputError: a field is wrong, or two clash.
    """
    rest = dict(fields)
    kind = rest.pop("engine", "live")
    if kind == "simulated":
        return parse(SimulatedConfig, rest, where=where, error=error)
    if kind == "attached":
        return parse(AttachedConfig, rest, where=where, error=error)
    if kind == "live":
        return parse(EngineConfig, rest, where=where, error=error)
    raise error(f"{where}: engine" if where else "engine", kind, "live, simulated or attached", "choose one of these")
