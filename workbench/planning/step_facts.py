"""What the steps of a stretch of time were: how busy, how full, how much of it prefill; and what they used up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from workbench.architecture import Architecture
from workbench.i18n import phrase
from workbench.metrics.mfu import step_flops
from workbench.metrics.step_table import StepTable
from workbench.trace import Trace, floats

_FULL = 0.95  # share of KV blocks from which the pool counts as full
_OFTEN = 0.2  # share of steps, or requests on average


def step_facts(
    trace: Trace, begin_s: float, end_s: float, architecture: Architecture | None = None, peak: float | None = None
) -> dict[str, float | None]:
    """Figures of the steps that ended in a stretch of time; None is not known.

    * ``busy``: share of the time in which a step ran
    * ``prefill_time``: of that, the share of steps with prefill in them
    * ``kv_max``, ``kv_mean``: share of the KV blocks in use
    * ``running_max``, ``waiting_mean``: requests
    * ``at_cap``: share of steps with as many running as ever were, while others waited
    * ``preemptions``
    * ``largest_step``, ``largest_prompt``: most tokens in a step, and most of one prompt in a step
    * ``mfu``: share of the GPUs' peak while steps ran
    """
    steps, table = StepTable.of(trace), trace.tables["steps"]
    inside = (steps.end_s >= begin_s) & (steps.end_s <= end_s)
    seconds, prefill = steps.seconds[inside], steps.prefill_tokens[inside] > 0
    took = float(seconds.sum())
    running, waiting = (floats(table[name])[steps.row][inside] for name in ("running", "waiting"))
    tokens = (steps.prefill_tokens + steps.decode_tokens)[inside]
    of_prompts = steps.part_tokens[steps.part_prefill & inside[steps.part_step]]
    most = _max(running)
    flops = (
        step_flops(trace, architecture, steps)[inside] if architecture is not None else np.full(len(seconds), np.nan)
    )
    counted = np.isfinite(flops) & (seconds > 0)
    spent = float(seconds[counted].sum())
    return {
        "busy": took / (end_s - begin_s) if end_s > begin_s else None,
        "prefill_time": float(seconds[prefill].sum()) / took if took else None,
        "kv_max": _max(steps.kv_use[inside]),
        "kv_mean": _mean(steps.kv_use[inside]),
        "running_max": most,
        "waiting_mean": _mean(waiting),
        "at_cap": _mean((running >= most) & (waiting > 0)) if most is not None else None,
        "preemptions": float(inside[steps.victim_step].sum()) if steps.records_victims else None,
        "largest_step": _max(tokens),
        "largest_prompt": _max(of_prompts),
        "mfu": float(flops[counted].sum()) / spent / peak if peak and spent else None,
    }


def used_up(facts: Mapping[str, float | None], max_running: int | None) -> str:
    """What of the engine is used up, in a few words: "KV pool full", "running cap of 8"; empty where neither is.

    Args:
        facts: figures of its steps, see :func:`step_facts`; what is not known counts as 0.
        max_running: the running cap; None where it is not known.
    """
    f = {name: value or 0.0 for name, value in facts.items()}
    if f.get("preemptions") or (f.get("kv_max", 0.0) >= _FULL and f.get("waiting_mean", 0.0) > _OFTEN):
        return phrase("KV pool full")
    if max_running is not None and f.get("running_max", 0.0) >= max_running and f.get("at_cap", 0.0) >= _OFTEN:
        return phrase("running cap of {max_running}", max_running=max_running)
    return ""


def _max(values: Any) -> float | None:
    known = np.asarray(values, dtype=np.float64)
    return float(np.nanmax(known)) if np.isfinite(known).any() else None


def _mean(values: Any) -> float | None:
    known = np.asarray(values, dtype=np.float64)
    return float(np.nanmean(known)) if np.isfinite(known).any() else None
