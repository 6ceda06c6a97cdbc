"""What two settings are compared by: figures of a round, with the direction that is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow.compute as pc

from workbench.config import SLO
from workbench.errors import InputError
from workbench.trace import Trace
from workbench.tune.figures import figures_of
from workbench.tune.goal import OBJECTIVES, Objective
from workbench.workload.scenario import Scenario
from workbench.workload.stream import plan

# In the order of tables and charts. Output and prompt tokens are the same in both rounds of a pair: one throughput.
MEASURES: Mapping[str, Objective] = {
    one.name: one
    for one in (
        OBJECTIVES["throughput"],
        OBJECTIVES["goodput"],
        Objective("gap_p50", "gap_p50_ms", "minimize", "ms", "gap P50"),
        OBJECTIVES["gap_p99"],
        OBJECTIVES["gap_max"],
        Objective("ttft_p50", "ttft_p50_s", "minimize", "s", "TTFT P50"),
        OBJECTIVES["ttft_p99"],
        OBJECTIVES["long_ttft"],
    )
}
COUNTED = ("goodput",)  # may be 0 in a round, where a ratio has no logarithm: compared by their sums over all rounds
PRIMARY = "gap_p99"  # what the knobs of chunked prefill are turned for


def measure(name: str) -> Objective:
    """The measure of that name.

    Raises:
        InputError: there is none.
    """
    if name not in MEASURES:
        raise InputError("primary", name, f"one of {', '.join(MEASURES)}", "choose from these")
    return MEASURES[name]


def check_gaps(scenario: Scenario, primary: Objective) -> None:
    """Refuse a scenario in which the primary measure has nothing to measure; no engine is needed.

    Raises:
        InputError: it is about gaps and no request has two output tokens.
        ScenarioError: the scenario cannot be planned.
    """
    if not primary.figure.startswith("gap_"):
        return
    length = scenario.engine_config.max_model_len
    longest = max(
        (
            request.output_tokens
            for place, stream in enumerate(scenario.streams)
            for request in plan(stream, place, scenario.seed, length)[0]
        ),
        default=0,
    )
    if longest < 2:
        raise InputError(
            f"scenario {scenario.name}",
            f"requests of {longest} output tokens",
            f"requests of 2 or more, since {primary.words} needs a gap between two",
            "lengthen output_tokens, or take another primary measure such as throughput or ttft_p99",
        )


def figures(trace: Trace, slo: SLO, from_s: float = 0.0) -> dict[str, float]:
    """The value of each measure that a run has, by its name.

    Args:
        trace: the run.
        slo: what goodput is held against.
        from_s: leave out what came before, in seconds from the run's zero.

    Returns:
        Also ``failed``, the share of requests that did not end well.
    """
    found = figures_of(since(trace, from_s) if from_s > 0 else trace, slo)
    kept = {name: found[one.figure] for name, one in MEASURES.items() if one.figure in found}
    return {**kept, "failed": found["failed"]}


def since(trace: Trace, from_s: float) -> Trace:
    """The trace without requests planned, and tokens that arrived, before ``from_s``."""
    tables = dict(trace.tables)
    tables["requests"] = tables["requests"].filter(pc.field("planned_s") >= from_s)
    arrived = pc.coalesce(tables["tokens"]["client_s"], tables["tokens"]["engine_s"])
    tables["tokens"] = tables["tokens"].filter(pc.greater_equal(arrived, from_s))
    return Trace(tables, trace.meta)


def column(rounds: Sequence[Mapping[str, float]], name: str) -> np.ndarray:
    """One measure of several rounds; NaN where a round did not have it."""
    return np.array([one.get(name, np.nan) for one in rounds], dtype=np.float64)
