"""A step from kernels that were measured: aiconfigurator-core's tables of vLLM, summed per request and operation.

Its own step call averages the prompts of a step, so that [64K + 1K] comes out faster than [64K]; here every prompt is
looked up by itself. The package is optional (Apache-2.0, 82 MB, no torch): ``pip install "aiconfigurator-core>=0.12"``.
"""

from __future__ import annotations

import json
import logging
import tempfile
from functools import lru_cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from workbench.architecture import Architecture
from workbench.errors import InputError
from workbench.simulate.presets import Device
from workbench.simulate.steptime.base import Band, Chunk, StepShape
from workbench.simulate.steptime.counted import STEP_S, Counted

PACKAGE = "aiconfigurator-core"
_SYSTEMS = {
    "h100-sxm": "h100_sxm",
    "h200": "h200_sxm",
    "a100-80gb-sxm": "a100_sxm",
    "b200": "b200_sxm",
    "l40s": "l40s",
}
# The tables are interpolated, and prompts with KV before them are derived: measured kernels, not measured steps.
ERROR = 0.15
_MEMOS = 1 << 16


class Tables(Counted):
    """Seconds of a step by kernels measured on another machine of that kind. Arguments are those of :class:`Counted`.

    Raises:
        InputError: the package is missing, or has no tables of this GPU or kind of model.
    """

    name = "tables"

    def __init__(
        self,
        architecture: Architecture,
        device: Device,
        tp: int = 1,
        pp: int = 1,
        *,
        weight_bytes: float = 2,
        kv_bytes: float = 2,
        step_s: float = STEP_S,
    ) -> None:
        super().__init__(architecture, device, tp, pp, weight_bytes=weight_bytes, kv_bytes=kv_bytes, step_s=step_s)
        self._engine = _compile(architecture, device, tp, pp, weight_bytes, kv_bytes)
        context, generation = self._engine.run_static_per_op(batch_size=1, isl=64, osl=2)
        self._prompt, self._decode = _Places.of(context), _Places.of(generation)
        self.body_s = lru_cache(maxsize=_MEMOS)(self._body_s)
        self.head_s = lru_cache(maxsize=_MEMOS)(self._head_s)
        self._prompt_s = lru_cache(maxsize=_MEMOS)(self._prompt_attention_s)
        self._shared_s = self._prompt_attention_s(Chunk(1, 0)) if architecture.kv_rank else 0.0

    def seconds(self, step: StepShape) -> float:
        """From the start of the step until its output is there."""
        total = self.step_s + self.head_s(step.prefills + step.decodes)
        total += self.body_s(step.prefill_tokens + step.decodes)
        # The module of MLA holds its projections, whose weights are read once and not once a request.
        total -= self._shared_s * (step.prefills + bool(step.decodes) - 1)
        for chunk in step.chunks:
            total += self._prompt_s(chunk)
        if step.decodes:
            seen = max(step.decode_context // step.decodes, 1) + 1
            total += _total(
                self._engine.evaluate_generation_ops(self._decode.attention, batch_size=step.decodes, s=seen)
            )
        return total

    def band(self, step: StepShape) -> Band:
        """With what interpolation between measured kernels may be off by."""
        seconds = self.seconds(step)
        return Band(seconds / (1 + ERROR), seconds, seconds * (1 + ERROR))

    def _body_s(self, tokens: int) -> float:
        if not tokens:
            return 0.0
        return _total(self._engine.evaluate_context_ops(self._prompt.body, batch_size=1, s=tokens, x=tokens))

    def _head_s(self, rows: int) -> float:
        if not rows:
            return 0.0
        return _total(self._engine.evaluate_context_ops(self._prompt.head, batch_size=1, s=rows, x=rows))

    def _prompt_attention_s(self, chunk: Chunk) -> float:
        found = self._engine.evaluate_context_ops(
            self._prompt.attention, batch_size=1, s=chunk.tokens, prefix=chunk.context
        )
        return _total(found)

    def describe(self) -> dict[str, Any]:
        """Plain data for a run's metadata."""
        return {
            "name": self.name,
            "calibrated": False,
            "label": "uncalibrated",
            "source": (
                f"kernels of vLLM on {self.device.name} measured by {PACKAGE} {version(PACKAGE)}, for "
                f"{self.architecture.name} on {self.tp * self.pp} of them"
            ),
            "error_pct": None,
            "stages": self.pp,
        }


class _Places:
    """Which operations of a phase go with the tokens, with each request, and with the rows of the logits."""

    def __init__(self, body: list[int], attention: list[int], head: list[int]) -> None:
        self.body, self.attention, self.head = body, attention, head

    @classmethod
    def of(cls, operations: list[tuple[str, float, float, str]]) -> _Places:
        body: list[int] = []
        attention: list[int] = []
        head: list[int] = []
        for place, (name, *_) in enumerate(operations):
            if name.endswith(("moe_pre_dispatch", "moe_post_dispatch")):
                continue  # all-reduces that "tp_allreduce" has already, where experts are cut as the rest is
            kind = attention if name.endswith(("_attention", "_mla_block")) else head if "logits" in name else body
            kind.append(place)
        return cls(body, attention, head)


def _total(found: list[tuple[str, float, float, str]]) -> float:
    return sum([one[1] for one in found]) / 1e3


def _compile(architecture: Architecture, device: Device, tp: int, pp: int, weight_bytes: float, kv_bytes: float) -> Any:
    """An engine of the package, for a model that it is told by a configuration file: no hub is asked."""
    try:
        engine = import_module("aiconfigurator_core.sdk.engine")
    except ImportError:
        raise InputError(
            "step-time model", "tables", f"the package {PACKAGE}", f'pip install "{PACKAGE}>=0.12", or take roofline'
        ) from None
    if device.key not in _SYSTEMS:
        raise InputError("step-time model tables", device.name, f"one of {', '.join(_SYSTEMS)}", "take roofline")
    logging.getLogger("aiconfigurator_core").setLevel(logging.ERROR)  # it tells of every table that it falls back to
    modes: dict[str, Any] = {"gemm_quant_mode": "fp8"} if weight_bytes <= 1 else {}
    if kv_bytes <= 1:
        modes["kvcache_quant_mode"] = "fp8"
    if architecture.moe_layers:
        modes |= {"moe_tp_size": tp, "moe_ep_size": 1}
        if weight_bytes <= 1:
            modes["moe_quant_mode"] = "fp8"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.json").write_text(json.dumps(_config(architecture)), encoding="utf-8")
        try:
            return engine.EngineHandle.compile(folder, _SYSTEMS[device.key], "vllm", tp_size=tp, pp_size=pp, **modes)
        except Exception as error:  # noqa: BLE001  the package raises errors of many kinds of its own
            what = f"tables of {architecture.name} on {tp * pp} x {device.name}"
            raise InputError(what, error, f"a model and split that {PACKAGE} knows", "take roofline") from None


def _config(a: Architecture) -> dict[str, Any]:
    """The ``config.json`` from which the package reads these sizes."""
    if a.windowed_layers:
        raise InputError("step-time model tables", a.name, "a model without sliding windows", "take roofline")
    config: dict[str, Any] = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "num_hidden_layers": a.layers,
        "hidden_size": a.hidden,
        "num_attention_heads": a.heads,
        "num_key_value_heads": a.kv_heads,
        "head_dim": a.head_dim,
        "intermediate_size": a.intermediate,
        "vocab_size": a.vocab,
        "max_position_embeddings": 1 << 17,
        "torch_dtype": "bfloat16",
    }
    if a.moe_layers:
        config |= {
            "architectures": ["Qwen3MoeForCausalLM"],
            "model_type": "qwen3_moe",
            "num_experts": a.experts,
            "num_experts_per_tok": a.experts_per_token,
            "moe_intermediate_size": a.expert_intermediate,
        }
    if a.kv_rank:
        config |= {
            "architectures": ["DeepseekV3ForCausalLM"],
            "model_type": "deepseek_v3",
            "n_routed_experts": a.experts,
            "n_shared_experts": a.shared_intermediate // a.expert_intermediate if a.expert_intermediate else 0,
            "first_k_dense_replace": a.layers - a.moe_layers,
            "moe_layer_freq": 1,
            "q_lora_rank": a.q_rank or None,
            "kv_lora_rank": a.kv_rank,
            "qk_rope_head_dim": a.rope_dim,
            "qk_nope_head_dim": a.head_dim - a.rope_dim,
            "v_head_dim": a.value_dim,
        }
    return config
