"""vLLM's real scheduler without a model: made-up tokens, no device, no weights. For tests of the probe."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

from vllm.config import CacheConfig, ModelConfig, ParallelConfig, SchedulerConfig, VllmConfig
from vllm.sampling_params import SamplingParams
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "vocab_size": 1000,
    "max_position_embeddings": 65536,
    "rms_norm_eps": 1e-5,
    "torch_dtype": "bfloat16",
}
BLOCK = 16


def make_scheduler(
    cls: type,
    folder: Path,
    *,
    budget: int = 8192,
    max_model_len: int = 4096,
    seqs: int = 32,
    blocks: int = 4000,
    reserve_full: bool = True,
) -> Any:
    """One of our scheduler classes on a made-up model."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(MODEL))
    model = ModelConfig(
        model=str(folder), dtype="bfloat16", max_model_len=max_model_len, skip_tokenizer_init=True, enforce_eager=True
    )
    cache = CacheConfig(block_size=BLOCK, gpu_memory_utilization=0.9, enable_prefix_caching=False)
    scheduling = SchedulerConfig(
        max_num_batched_tokens=budget,
        max_num_seqs=seqs,
        max_model_len=max_model_len,
        is_encoder_decoder=False,
        enable_chunked_prefill=True,
        scheduler_reserve_full_isl=reserve_full,
        async_scheduling="Async" in cls.__name__,
    )
    config = VllmConfig(
        model_config=model, cache_config=cache, scheduler_config=scheduling, parallel_config=ParallelConfig()
    )
    config.scheduler_config.async_scheduling = "Async" in cls.__name__
    config.cache_config.num_gpu_blocks = blocks
    spec = FullAttentionSpec(block_size=BLOCK, num_kv_heads=1, head_size=32, dtype=model.dtype)
    kv = KVCacheConfig(num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)])
    return cls(
        vllm_config=config,
        kv_cache_config=kv,
        structured_output_manager=StructuredOutputManager(config),
        block_size=BLOCK,
        log_stats=True,
    )


def make_request(name: str, prompt: int, output: int, arrival: float = 0.0, priority: int = 0) -> Request:
    """A request with a made-up prompt of its own."""
    params = SamplingParams(max_tokens=output, ignore_eos=True)
    return Request(
        request_id=name,
        prompt_token_ids=[_token(name, i) for i in range(prompt)],
        sampling_params=params,
        pooling_params=None,
        arrival_time=arrival,
        priority=priority,
    )


def _token(name: str, i: int) -> int:
    """A token that depends on the name, not on the hash seed."""
    return (sum(name.encode()) * 31 + i * 7) % 999 + 1


def output_of(plan: Any, scheduler: Any) -> ModelRunnerOutput:
    """A token for each request whose prefill is done with this step."""
    names = list(plan.num_scheduled_tokens)
    sampled = [[] if scheduler.requests[name].is_prefill_chunk else [7] for name in names]
    return ModelRunnerOutput(
        req_ids=names,
        req_id_to_index={name: i for i, name in enumerate(names)},
        sampled_token_ids=sampled,
    )


def output_of_sampled(plan: Any) -> ModelRunnerOutput:
    """A token for each request of a step that is known to sample for all of them."""
    names = list(plan.num_scheduled_tokens)
    return ModelRunnerOutput(
        req_ids=names, req_id_to_index={name: i for i, name in enumerate(names)}, sampled_token_ids=[[7] for _ in names]
    )


def step(scheduler: Any) -> SimpleNamespace:
    """Plan one step and give it its output."""
    plan = scheduler.schedule()
    outputs = scheduler.update_from_output(plan, output_of(plan, scheduler)) if plan.num_scheduled_tokens else {}
    return SimpleNamespace(plan=plan, outputs=outputs)
