"""What vLLM resolves its own defaults to for a model: ``python -m workbench.engine.probe.defaults MODEL``.

A process of its own, since it imports vllm. Prints one JSON line, the last of its output.
"""

from __future__ import annotations

import json
import sys

from vllm.engine.arg_utils import EngineArgs
from vllm.usage.usage_lib import UsageContext


def resolved(model: str) -> dict[str, object]:
    """The scheduler's configuration when a server for ``model`` is started with no flags at all."""
    config = EngineArgs(model=model).create_engine_config(UsageContext.OPENAI_API_SERVER)
    scheduler = config.scheduler_config
    return {
        "enable_chunked_prefill": bool(scheduler.enable_chunked_prefill),
        "max_num_batched_tokens": scheduler.max_num_batched_tokens,
        "max_num_seqs": scheduler.max_num_seqs,
        "long_prefill_token_threshold": scheduler.long_prefill_token_threshold,
        "async_scheduling": bool(scheduler.async_scheduling),
        "enable_prefix_caching": bool(config.cache_config.enable_prefix_caching),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(resolved(sys.argv[1])) + "\n")
