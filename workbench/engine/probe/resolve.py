"""What vLLM resolves command lines to: ``python -m workbench.engine.probe.resolve``, a JSON list of them on stdin.

A process of its own, since it imports vllm. Prints one JSON line, the last of its output: for each command line (the
words behind ``vllm serve``) what the scheduler, the cache and the workers would get. Starts no engine.
"""

from __future__ import annotations

import json
import sys

from vllm.engine.arg_utils import AsyncEngineArgs
from vllm.entrypoints.launchers.cli_args import make_arg_parser
from vllm.usage.usage_lib import UsageContext
from vllm.utils.argparse_utils import FlexibleArgumentParser


def resolved(argv: list[str]) -> dict[str, object]:
    """The fields that the articles speak of, as vLLM's own parser and configuration have them."""
    parser = make_arg_parser(FlexibleArgumentParser())
    config = AsyncEngineArgs.from_cli_args(parser.parse_args(argv)).create_engine_config(UsageContext.OPENAI_API_SERVER)
    return {
        "enable_chunked_prefill": bool(config.scheduler_config.enable_chunked_prefill),
        "max_num_batched_tokens": config.scheduler_config.max_num_batched_tokens,
        "max_num_seqs": config.scheduler_config.max_num_seqs,
        "long_prefill_token_threshold": config.scheduler_config.long_prefill_token_threshold,
        "max_model_len": config.model_config.max_model_len,
        "tensor_parallel_size": config.parallel_config.tensor_parallel_size,
        "gpu_memory_utilization": config.cache_config.gpu_memory_utilization,
        "block_size": config.cache_config.block_size,
        "enable_prefix_caching": bool(config.cache_config.enable_prefix_caching),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps([resolved(argv) for argv in json.load(sys.stdin)]) + "\n")
