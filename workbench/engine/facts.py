"""What an engine says of itself: the stage that its log shows while it starts, and facts for a run's metadata."""

from __future__ import annotations

from typing import Any

from workbench.engine.collector import Collector
from workbench.engine.probe.compat import installed_vllm
from workbench.i18n import marked

# Texts of vLLM 0.32, the latest first.
_STAGES = (
    ("Application startup complete", marked("answering")),
    ("Starting vLLM server", marked("opening the port")),
    ("init engine", marked("opening the port")),
    ("GPU KV cache size", marked("warming up")),
    ("Loading weights took", marked("making the KV pool")),
    ("Starting to load model", marked("loading weights")),
    ("Initializing a V1 LLM engine", marked("starting the engine core")),
)


def stage(log: str) -> str:
    """What a starting engine is doing.

    Args:
        log: the end of its log.
    """
    return next((stage for mark, stage in _STAGES if mark in log), marked("importing vLLM"))


def facts_of(collector: Collector | None) -> dict[str, Any]:
    """Facts that the probe has sent; None is what is not known, or not any more.

    Args:
        collector: of the engine; none if it does not run.
    """
    hello = collector.scheduler if collector else None
    workers = list(collector.workers.values()) if collector else []
    return {
        "vllm": "=".join(installed_vllm() or ("vllm", "not installed")),
        "resolved": {field: getattr(hello, field) for field in hello.__struct_fields__} if hello else None,
        # Of the one rank whose output vLLM hands back. On CPU the weights are what loading them made resident.
        "memory_split": {
            "rank": workers[0].rank,
            "weights_bytes": workers[0].weights_bytes,
            "kv_bytes": workers[0].kv_bytes,
        }
        if workers
        else None,
        "decode_floor_ms": collector.decode_floor_ms if collector else None,  # of its last steps without prefill
        "probe_faults": list(collector.faults) if collector else None,  # since the engine started
        "probe_dropped": collector.dropped if collector else None,  # since the run began
    }
