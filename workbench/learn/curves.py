"""A trace as one value a column of time: what a guess is drawn over."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from workbench import metrics
from workbench.claims.verdict import Measured
from workbench.errors import InputError
from workbench.metrics.gaps import Floats
from workbench.units import MIB

_MOST_COLUMNS = 4  # times the columns that were drawn: beyond that a run is cut off


def _gap(run: Measured) -> pd.DataFrame:
    """Every gap, from one arrival to the next, ms: a stream that stands still is at that height all the while."""
    gaps = metrics.gaps(run.trace)
    return pd.DataFrame(
        {"begin": gaps["at_s"] - gaps["gap_ms"] / 1e3, "end": gaps["at_s"], "value": gaps["gap_ms"].astype(float)}
    )


def _of_steps(run: Measured, values: Callable[[pd.DataFrame], pd.Series]) -> pd.DataFrame:
    steps = run.trace.steps
    begin = steps["start_s"].fillna(steps["scheduled_s"])
    return pd.DataFrame({"begin": begin, "end": steps["end_s"], "value": values(steps).astype(float)}).dropna()


def _tokens(run: Measured) -> pd.DataFrame:
    return _of_steps(run, lambda steps: steps["prefill_tokens"] + steps["decode_tokens"])


def _activation(run: Measured) -> pd.DataFrame:
    return _of_steps(run, lambda steps: steps["activation_bytes"] / MIB)


def _kv(run: Measured) -> pd.DataFrame:
    return _of_steps(run, lambda steps: steps["kv_use"] * 100)


CURVES: Mapping[str, Callable[[Measured], pd.DataFrame]] = {
    "longest_gap": _gap,
    "step_tokens": _tokens,
    "activation": _activation,
    "kv_use": _kv,
}


def over_time(name: str, run: Measured, seconds: float, columns: int) -> Floats:
    """The largest value that touches each column of time.

    Args:
        name: ``longest_gap`` (ms), ``step_tokens``, ``activation`` (MiB) or ``kv_use`` (%).
        run: any run; a column where nothing was measured is NaN.
        seconds: width of ``columns`` columns.
        columns: those that were drawn. There are more where the run went on, up to four times as many.

    Raises:
        InputError: there is no such curve.
    """
    if name not in CURVES:
        raise InputError("curve", name, f"one of {', '.join(CURVES)}", "choose one of these")
    spans = CURVES[name](run)
    width = seconds / columns
    last = float(spans["end"].max()) if len(spans) else 0.0
    count = min(max(columns, math.ceil(last / width - 1e-9)), _MOST_COLUMNS * columns)
    found = np.full(count, np.nan)
    first = np.floor(spans["begin"].to_numpy(float) / width).astype(int).clip(0)
    # A span that ends on the edge of a column does not reach into it.
    until = np.ceil(spans["end"].to_numpy(float) / width - 1e-9).astype(int).clip(1) - 1
    for begin, end, value in zip(first, until, spans["value"].to_numpy(float), strict=True):
        held = found[begin : max(begin, end) + 1]
        np.fmax(held, value, out=held)
    return found
