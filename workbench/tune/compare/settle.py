"""When a series has settled: how long an engine warms up, and where the steady part of a round begins.

MSER-5 cuts off the beginning that makes the mean of the rest least certain: of the means of batches of 5 values it
takes the cut d that minimises the sum of squares of what remains over (m - d) squared (White 1997, "An effective
truncation heuristic for bias reduction in simulation output"; batches of 5: Spratt 1998, White, Cobb and Spratt 2000).
A minimum in the second half says that the series has not settled (Hoad, Robinson and Davies 2010).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from workbench.metrics.gaps import Gaps
from workbench.metrics.step_table import StepTable
from workbench.trace import Trace
from workbench.workload.arrivals import Concurrency, Rated
from workbench.workload.scenario import Scenario

_BATCH = 5
_LEAST_BATCHES = 10  # fewer say nothing
_LAST_BATCHES = 5  # whose mean is too uncertain to be what all others are cut off for
_LEAST_ALIKE = 5  # steps of one make-up


def mser5(values: Sequence[float] | NDArray[np.float64]) -> int | None:
    """How many values at the beginning belong to the warm-up; None where the series does not settle, or is short.

    Args:
        values: in the order of time.
    """
    known = np.asarray(values, dtype=np.float64)
    m = len(known) // _BATCH
    if m < _LEAST_BATCHES:
        return None
    means = known[: m * _BATCH].reshape(m, _BATCH).mean(axis=1)
    means = means - means.mean()  # so that squares lose no digits
    left = np.arange(m, 0, -1)
    total, squares = np.cumsum(means[::-1])[::-1], np.cumsum(means[::-1] ** 2)[::-1]
    error = np.maximum(squares - total**2 / left, 0.0) / left**2
    cut = int(np.argmin(error[: m - _LAST_BATCHES]))
    return cut * _BATCH if cut <= m // 2 else None


def paces(traces: Sequence[Trace]) -> list[NDArray[np.float64]]:
    """How slow each step was among those of its own make-up, whatever the load asked for at that moment.

    Args:
        traces: of plays on one engine, one after the other.

    Returns:
        For each play the natural logarithm of each step's time over the median time of the steps of all plays with as
        many decode and prefill tokens, in the order of the steps. Steps that have fewer than five of their like are
        left out.
    """
    frames = []
    for number, trace in enumerate(traces):
        steps = StepTable.of(trace)
        known = (steps.seconds > 0) & ~np.isnan(steps.prefill_tokens)
        made_of = {"prefill": steps.prefill_tokens[known], "decode": steps.decode_tokens[known]}
        frames.append(pd.DataFrame({"play": number, **made_of, "log": np.log(steps.seconds[known])}))
    frame = pd.concat(frames, ignore_index=True)
    alike = frame.groupby(["prefill", "decode"])["log"]
    often = alike.transform("size") >= _LEAST_ALIKE
    frame = frame.assign(pace=frame["log"] - alike.transform("median"))[often]
    return [frame.loc[frame["play"] == number, "pace"].to_numpy() for number in range(len(traces))]


def is_warm(traces: Sequence[Trace]) -> bool:
    """Whether an engine was warm before the last of these plays: MSER-5 cuts nothing of it.

    Args:
        traces: of plays one after the other, the first on an engine that has just started.
    """
    if len(traces) < 2:
        return False
    pace = paces(traces)
    cut = mser5(np.concatenate(pace))
    return cut is not None and cut <= sum(map(len, pace[:-1]))


def lead_in_s(trace: Trace) -> float | None:
    """When a steady load has filled the engine: MSER-5 on the gaps in the order of their ends.

    Returns:
        Seconds from the run's zero; 0 where nothing need be cut off, None where the gaps do not settle.
    """
    gaps = Gaps.of(trace)
    order = np.argsort(gaps.at_s, kind="stable")
    cut = mser5(gaps.gap_ms[order])
    if cut is None:
        return None
    return float(gaps.at_s[order][cut]) if cut else 0.0


def is_steady(scenario: Scenario) -> bool:
    """Whether a load goes on in the same way, so that its beginning may be cut off; bursts are played whole."""
    return all(isinstance(stream.arrivals, Rated | Concurrency) for stream in scenario.streams)
