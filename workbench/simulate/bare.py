"""vLLM's scheduler with neither model nor device: made-up tokens, no weights."""

from __future__ import annotations

import functools
import json
import os
from pathlib import Path
from typing import Any

os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

from vllm.config import CacheConfig, ModelConfig, ParallelConfig, SchedulerConfig, VllmConfig
from vllm.sampling_params import SamplingParams
from vllm.utils.hashing import sha256
from vllm.v1.core.kv_cache_utils import get_request_block_hasher, init_none_hash
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.request import Request
from vllm.v1.structured_output import StructuredOutputManager

BLOCK = 16  # tokens in a KV block, where nothing else is asked for
_TOKENS = 999  # made-up vocabulary
_MODEL = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 32,
    "vocab_size": _TOKENS + 1,
    "max_position_embeddings": 1 << 20,
    "rms_norm_eps": 1e-5,
    "torch_dtype": "bfloat16",
}


def make_scheduler(
    cls: type,
    folder: Path,
    *,
    budget: int = 8192,
    max_model_len: int = 4096,
    seqs: int = 32,
    blocks: int = 4000,
    reserve_full: bool = True,
    prefix_cache: bool = False,
    block_size: int = BLOCK,
    policy: str = "fcfs",
) -> Any:
    """One of vLLM's scheduler classes, or of ours, on a made-up model.

    Args:
        cls: the class; one with "Async" in its name schedules two steps at a time.
        folder: where the made-up model's configuration is written.
        budget: ``max_num_batched_tokens``, the ceiling of the budget.
        max_model_len: longest prompt and output of a request, tokens.
        seqs: ``max_num_seqs``.
        blocks: KV blocks, of which vLLM keeps one for itself.
        reserve_full: ``scheduler_reserve_full_isl``.
        prefix_cache: whether blocks are kept for later prompts.
        block_size: tokens in a block.
        policy: ``--scheduling-policy``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(_MODEL))
    model = ModelConfig(
        model=str(folder), dtype="bfloat16", max_model_len=max_model_len, skip_tokenizer_init=True, enforce_eager=True
    )
    ahead = "Async" in cls.__name__
    scheduling = SchedulerConfig(
        max_num_batched_tokens=budget,
        max_num_seqs=seqs,
        max_model_len=max_model_len,
        is_encoder_decoder=False,
        enable_chunked_prefill=True,
        scheduler_reserve_full_isl=reserve_full,
        async_scheduling=ahead,
        policy=policy,
    )
    cache = CacheConfig(block_size=block_size, gpu_memory_utilization=0.9, enable_prefix_caching=prefix_cache)
    config = VllmConfig(
        model_config=model, cache_config=cache, scheduler_config=scheduling, parallel_config=ParallelConfig()
    )
    config.scheduler_config.async_scheduling = ahead  # vLLM turns it off where no device can do it
    config.cache_config.num_gpu_blocks = blocks
    spec = FullAttentionSpec(block_size=block_size, num_kv_heads=1, head_size=32, dtype=model.dtype)
    kv = KVCacheConfig(num_blocks=blocks, kv_cache_tensors=[], kv_cache_groups=[KVCacheGroupSpec(["layer"], spec)])
    return cls(
        vllm_config=config,
        kv_cache_config=kv,
        structured_output_manager=StructuredOutputManager(config),
        block_size=block_size,
        log_stats=True,
    )


def make_request(
    name: str,
    prompt: int,
    output: int,
    arrival: float = 0.0,
    priority: int = 0,
    shared: int = 0,
    prefix_cache: bool = False,
    block_size: int = BLOCK,
) -> Request:
    """A request with a made-up prompt.

    Args:
        name: its id, which the prompt's tokens depend on.
        prompt: tokens in it.
        output: tokens it generates.
        arrival: when it comes, in virtual seconds.
        priority: its class.
        shared: so many tokens at the start are those of every other prompt.
        prefix_cache: whether its blocks get the hashes that the prefix cache needs.
        block_size: tokens in a block.
    """
    return Request(
        request_id=name,
        prompt_token_ids=[_token("" if i < shared else name, i) for i in range(prompt)],
        sampling_params=SamplingParams(max_tokens=output, ignore_eos=True),
        pooling_params=None,
        arrival_time=arrival,
        priority=priority,
        block_hasher=block_hasher(block_size) if prefix_cache else None,
    )


@functools.cache
def block_hasher(block_size: int) -> Any:
    """What the prefix cache knows blocks by, as a request takes it."""
    init_none_hash(sha256)
    return get_request_block_hasher(block_size, sha256)


def _token(text: str, i: int) -> int:
    """A token that depends on the text, not on Python's hash seed."""
    return (sum((k + 1) * c for k, c in enumerate(text.encode())) * 31 + i * 7) % _TOKENS + 1
