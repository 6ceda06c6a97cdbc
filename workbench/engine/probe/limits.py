"""What the knobs of a running scheduler may be set to; the workbench checks too, but vLLM's health hangs on this."""

from __future__ import annotations

from typing import TYPE_CHECKING

from workbench.engine.probe.policies import POLICIES
from workbench.engine.probe.wire import KnobChange

if TYPE_CHECKING:
    from vllm.v1.core.sched.scheduler import Scheduler


def refusal(change: KnobChange, scheduler: Scheduler, ceiling: int) -> str:
    """Why a change cannot be applied; empty when it can.

    Args:
        change: the knobs asked for.
        scheduler: vLLM's scheduler.
        ceiling: the token budget that the engine was started with.
    """
    bounds = (
        ("budget", change.budget, 1, ceiling),
        ("chunk", change.chunk, 0, scheduler.max_model_len),
        ("max_running", change.max_running, 1, scheduler.max_num_running_reqs),
        ("watermark", change.watermark, 0, 0.5),
        ("aging_s", change.aging_s, 0, float("inf")),
    )
    for name, value, low, high in bounds:
        if not low <= value <= high:
            return f"{name} {value} outside {low}..{high}"
    if not change.target_gap_ms > 0:
        return f"target_gap_ms {change.target_gap_ms} not above 0"
    if change.policy not in POLICIES:
        return f"policy {change.policy!r} not one of {', '.join(POLICIES)}"
    return ""
