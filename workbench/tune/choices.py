"""Which values of the hot knobs are worth trying, where nobody says which, and in which order they stand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.config import EngineConfig
from workbench.tune.goal import Goal
from workbench.workload.scenario import Scenario

_LEAST_BUDGET, _LEAST_CHUNK, _LEAST_RUNNING = 32, 32, 4
_TARGETS = (0.4, 0.55, 0.7, 0.85, 1.0)  # of the tightest gap that was promised
_EVERY = (2, 4, 8, 16)


def choices(scenario: Scenario, config: EngineConfig, goal: Goal) -> dict[str, tuple[Any, ...]]:
    """Values of each hot knob, in order.

    Args:
        scenario: with classes in it, policies with classes are tried.
        config: its ceilings end the lists.
        goal: its tightest gap is what ``target_gap`` is given.
    """
    ceiling, longest, running = config.max_num_batched_tokens, config.max_model_len, config.max_num_seqs
    classes = {stream.priority for stream in scenario.streams}
    tightest = min(
        [limit.value for limit in goal.parsed if limit.kind == "gap" and limit.part in ("p99", "max")]
        + ([goal.slo.gap_ms] if "goodput" in goal.objectives else []),
        default=goal.slo.gap_ms,
    )
    policies = ["chunked", "decode_first", "target_gap"] + (["qos"] if len(classes) > 1 else [])
    return {
        "policy": tuple(policies),
        "budget": _powers(min(_LEAST_BUDGET, ceiling), ceiling),
        "chunk": (*_powers(_LEAST_CHUNK, min(ceiling, longest) // 2), 0),
        "max_running": _powers(min(_LEAST_RUNNING, running), running),
        "target_gap_ms": tuple(round(tightest * share, 3) for share in _TARGETS),
        "prefill_every": _EVERY,
    }


def in_order(given: Mapping[str, Sequence[Any]]) -> dict[str, tuple[Any, ...]]:
    """Numbers by size, "off" of a chunk cap last; each once."""
    out: dict[str, tuple[Any, ...]] = {}
    for name, values in given.items():
        distinct = list(dict.fromkeys(values))
        if name == "chunk":
            distinct.sort(key=lambda value: value or math.inf)
        elif all(isinstance(value, int | float) for value in distinct):
            distinct.sort()
        out[name] = tuple(distinct)
    return out


def _powers(low: int, high: int) -> tuple[int, ...]:
    """Powers of two from low to high, and high itself."""
    if high < low:
        return ()
    first = math.ceil(math.log2(max(low, 1)))
    powers = [2**power for power in range(first, int(math.log2(high)) + 1)]
    return tuple(sorted({low, *powers, high}))
