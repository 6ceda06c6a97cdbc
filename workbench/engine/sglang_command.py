"""The ``python -m sglang.launch_server`` command for what was tuned here, by the flags that SGLang has for it.

Names and values are those of SGLang 0.5.23 (``ServerArgs.add_cli_args``). What each does is not what vLLM does; where
they differ, a remark behind the command says how:

* ``--chunked-prefill-size`` is the budget of a prefill batch, of all its requests. With ``--enable-mixed-chunk``
  decodes ride in the same batch and are taken off it (``PrefillAdder``), which is vLLM's token budget.
* ``--max-prefill-tokens`` bounds the prompts that one batch takes in; it is set to the same number.
* vLLM's chunk cap of one request has no flag there.
"""

from __future__ import annotations

import shlex
from typing import Any

from workbench.config import EngineConfig, Knobs
from workbench.engine.command import servable
from workbench.models import ModelFiles
from workbench.redact import arguments

TESTED = "0.5.23"

_BACKENDS = {"FLASHINFER": "flashinfer", "FLASH_ATTN": "fa3", "TRITON_ATTN": "triton", "FLASHMLA": "flashmla"}
_LAUNCH = ("python", "-m", "sglang.launch_server")


def sglang_command(config: EngineConfig, model: ModelFiles | None = None, knobs: Knobs | None = None) -> str:
    """The command that a person pastes; what SGLang has no flag for is named in a comment behind it.

    Args:
        config: start-up fields.
        model: the resolved model, so that a preset shows as the folder it was made in.
        knobs: hot knobs to be made permanent; by default those of a fresh start.
    """
    knobs = knobs or config.envelope.defaults
    path, load_format, remark = servable(str(model.path) if model else config.model)
    load_format = model.load_format if model and model.load_format != "auto" else load_format
    remarks = [remark] if remark else []
    argv = [*_LAUNCH, "--model-path", path, *_start_up(config, load_format), *_scheduling(config, knobs, remarks)]
    if config.attention_backend is not None:
        known = _BACKENDS.get(config.attention_backend.upper())
        argv += ["--attention-backend", known] if known else []
        remarks += [] if known else [f"without the attention backend {config.attention_backend}, a name of vLLM's"]
    if config.extra_args:
        remarks.append(f"without {' '.join(arguments(config.extra_args))}, flags of vLLM's")
    line = shlex.join(argv)
    return f"{line}  # {'; '.join(remarks)}" if remarks else line


def _start_up(config: EngineConfig, load_format: str) -> list[str]:
    values: dict[str, Any] = {
        "--context-length": config.max_model_len,
        "--tp-size": config.tensor_parallel_size if config.tensor_parallel_size > 1 else None,
        "--pp-size": config.pipeline_parallel_size if config.pipeline_parallel_size > 1 else None,
        "--dtype": config.dtype if config.dtype != "auto" else None,
        "--quantization": config.quantization,
        "--page-size": config.block_size,
        "--mem-fraction-static": config.gpu_memory_utilization,
        "--hicache-size": None if config.kv_offloading_gib is None else max(1, round(config.kv_offloading_gib)),
        "--load-format": load_format if load_format != "auto" else None,
        "--port": config.port,
    }
    argv = [word for flag, value in values.items() if value is not None for word in (flag, str(value))]
    if config.kv_offloading_gib is not None:
        argv.append("--enable-hierarchical-cache")
    if config.enforce_eager:
        argv += ["--cuda-graph-backend-decode", "disabled", "--cuda-graph-backend-prefill", "disabled"]
    return argv


def _scheduling(config: EngineConfig, knobs: Knobs, remarks: list[str]) -> list[str]:
    """Budget, running cap, policy and prefix cache."""
    whole = knobs.policy == "monolithic"
    # -1 switches chunks off; then what a batch takes in bounds a step.
    argv = ["--chunked-prefill-size", "-1" if whole else str(knobs.budget), "--max-prefill-tokens", str(knobs.budget)]
    argv += ["--max-running-requests", str(min(config.max_num_seqs, knobs.max_running))]
    cached = config.enable_prefix_caching and knobs.prefix_cache
    prioritised = knobs.policy in ("priority", "qos") or config.scheduling_policy == "priority"
    # lpm, SGLang's default, takes the longest cached prefix first; without a cache it is fcfs.
    argv += ["--schedule-policy", "fcfs"]
    if prioritised:
        # In vLLM the lower number goes first.
        argv += ["--enable-priority-scheduling", "--schedule-low-priority-values-first"]
    if not cached:
        argv.append("--disable-radix-cache")
    if knobs.policy == "decode_first":
        if knobs.prefill_every > 1:
            argv += ["--prefill-decode-interval", str(knobs.prefill_every - 1)]
        remarks.append(
            "decode_first only in part: prefill waits for decode steps, but a prefill batch stops the decodes"
        )
    elif not whole:
        argv.append("--enable-mixed-chunk")
    if knobs.policy in ("qos", "target_gap"):
        remarks.append(f"without the policy {knobs.policy}, which SGLang does not have")
    if knobs.chunk and not whole:
        remarks.append(f"without the chunk cap of {knobs.chunk}: SGLang caps a batch, not a request")
    if knobs.watermark or not knobs.reserve_full:
        remarks.append("without watermark and reserve_full: see --schedule-conservativeness")
    if config.kv_cache_mib is not None:
        remarks.append("the KV pool is what --mem-fraction-static leaves")
    return argv
