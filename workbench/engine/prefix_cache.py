"""Emptying the prefix cache of an engine at rest, and learning whether it worked."""

from __future__ import annotations

import time
from collections.abc import Callable

from workbench.config import Knobs
from workbench.engine.collector import Collector
from workbench.errors import EngineError

_ANSWER_S = 10.0  # a step of one token takes some 30 ms; a machine that swaps takes longer
_LOOK_S = 0.005


def reset(collector: Collector, revision: int, knobs: Knobs, nudge: Callable[[], None]) -> None:
    """Empty the prefix cache; returns when it is done.

    The scheduler looks at its knob page before it plans a step, and an engine at rest plans none: so it is given one.

    Args:
        collector: of the engine.
        revision: of the knobs in force.
        knobs: those knobs; they stay as they are.
        nudge: has the engine compute one step, of a prompt too short to be cached.

    Raises:
        EngineError: it did not work, or nothing was heard of it.
    """
    answered, faults = collector.replies, collector.fault_count
    collector.send_cache_reset(revision, knobs)
    nudge()
    deadline = time.monotonic() + _ANSWER_S
    # The step's record comes after everything that the probe had to say before it.
    while collector.replies == answered or collector.last_step < collector.replied_step:
        if time.monotonic() > deadline:
            raise EngineError(
                f"prefix cache: got no answer in {_ANSWER_S:g} s, expected a step of the engine; see its log"
            )
        time.sleep(_LOOK_S)
    if collector.fault_count > faults:
        said = collector.faults[faults] if faults < len(collector.faults) else "a fault"
        raise EngineError(
            f"prefix cache: got {said!r}, expected an empty cache; wait until nothing uses its blocks and reset again"
        )
