"""C8: the article's reference command, rendered from a preset and read back by vLLM itself."""

from __future__ import annotations

import itertools
import shlex
from collections.abc import Mapping
from typing import Any

from workbench.claims.limits import H100, LLAMA_70B
from workbench.claims.verdict import Outcome, Verdict
from workbench.config import EngineConfig
from workbench.engine.command import serve_command
from workbench.i18n import phrase, phrases

# The article's values, by flag of `vllm serve`, and the field that vLLM resolves it into.
ARTICLE: dict[str, tuple[str, float]] = {
    "--tensor-parallel-size": ("tensor_parallel_size", 4),
    "--gpu-memory-utilization": ("gpu_memory_utilization", 0.90),
    "--max-model-len": ("max_model_len", 32_768),
    "--max-num-batched-tokens": ("max_num_batched_tokens", 2_048),
    "--max-num-seqs": ("max_num_seqs", 128),
    "--block-size": ("block_size", 16),
}


def reference_command(config: EngineConfig, resolved: Mapping[str, Any], origin: str) -> Verdict:
    """Judge C8: does the command that a preset renders hold the article's six values, and does vLLM take them?

    Holds when all six stand in the command and come back from vLLM as they are; in part when some do; does not hold
    here when none does.

    Args:
        config: the preset's configuration.
        resolved: what vLLM resolved that command to; see :func:`workbench.claims.resolved.resolve`.
        origin: which vLLM resolved it, and for which model.
    """
    words = shlex.split(serve_command(config))
    given = dict(itertools.pairwise(words))
    off = {}
    for flag, (field, value) in ARTICLE.items():
        written, came_back = given.get(flag, "not there"), resolved.get(field)
        if not _same(written, value) or not _same(came_back, value):
            off[flag] = phrase(
                "{flag}: the article's {value:g}, in the command {written}, resolved to {came_back}",
                flag=flag,
                value=value,
                written=written,
                came_back=came_back,
            )
    outcome: Outcome = "holds" if not off else "holds in part" if len(off) < len(ARTICLE) else "does not hold here"
    right = len(ARTICLE) - len(off)
    gpus = config.tensor_parallel_size
    weights = LLAMA_70B.weight_bytes()
    pool = (config.gpu_memory_utilization or 1.0) * gpus * H100.memory.value - weights
    tokens = pool / LLAMA_70B.kv_bytes_per_token()
    fits = (
        phrase(
            "with {name} on {gpus} {gpu}s at most {tokens:,.0f} tokens of KV are left beside the "
            "weights: {prompts:,.1f} prompts of full length, or {each:,.0f} tokens for each of "
            "{max_num_seqs} sequences.",
            name=LLAMA_70B.name,
            gpus=gpus,
            gpu=H100.name,
            tokens=tokens,
            prompts=tokens / config.max_model_len,
            each=tokens / config.max_num_seqs,
            max_num_seqs=config.max_num_seqs,
        )
        if pool > 0
        else phrase(
            "{weights:,.0f} GB of {name}'s weights do not fit on {gpus} {gpu}s.",
            weights=weights / 1000000000.0,
            name=LLAMA_70B.name,
            gpus=gpus,
            gpu=H100.name,
        )
    )
    return Verdict(
        claim="C8",
        text="The reference command: TP 4, memory 0.90, length 32,768, budget 2,048, 128 sequences, blocks of 16",
        outcome=outcome,
        sentence=(
            phrase(
                "{right} of {all} values stand in the command and are what vLLM resolves it to.",
                right=right,
                all=len(ARTICLE),
            )
            + phrases("", [phrase(" {what}.", what=text) for text in off.values()])
        ),
        origin=origin,
        article="TP 4, 0.90, 32,768, 2,048, 128, 16.",
        arithmetic=fits,
        untested=phrase("the command itself: it needs {gpus} GPUs and the model.", gpus=gpus),
    )


def _same(found: object, value: float) -> bool:
    try:
        return float(str(found)) == value
    except ValueError:
        return False
