"""From a run to a trial's result; and a simulated run looked at as if it were going on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from workbench.tail import Batch
from workbench.trace import Trace, floats
from workbench.tune.goal import FAILED, Goal
from workbench.tune.trial import Asked, Result, Stop, Watch

_LOOKS = 100  # at a simulated run, from its begin to its end
_TIMES = {"tokens": ("client_s", "engine_s"), "requests": ("done_s",)}


def result_of(
    asked: Asked,
    goal: Goal,
    trace: Trace,
    *,
    stop: Stop | None = None,
    engine_s: float = 0.0,
    label: str = "",
    run: str | None = None,
) -> Result:
    """What a run that was played to its end, or stopped, says about a trial.

    Of one that was stopped the figures are those of what was played; requests that were cut off are no failures, the
    limit that stopped it is exceeded, and where it was stopped because others are better, the objective is what it
    could have come to at most.
    """
    figures, objectives, excess = goal.judge(trace)
    common = (asked.number, asked.point, asked.seed)
    if stop is None:
        return Result(*common, "complete", figures, objectives, excess, engine_s, label, run)
    if not stop.constraint:
        return Result(*common, "interrupted", figures, (), {}, engine_s, label, run, stop.why)
    figures.pop("failed", None)
    excess.pop(FAILED, None)
    if stop.excess > 0:
        excess[stop.constraint] = max(excess.get(stop.constraint, 0.0), stop.excess)
    if stop.reach is not None:
        objectives = (stop.reach, *objectives[1:])
    return Result(*common, "stopped", figures, objectives, excess, engine_s, label, run, stop.why)


def look_back(trace: Trace, watch: Watch) -> tuple[Stop, float] | None:
    """Look at a run that is over as a watch would have seen it; None where it would have let it go on.

    Returns:
        Why and when, in seconds from the run's zero, it would have been stopped.
    """
    end = max((float(np.nanmax(_at(trace.tables[name], name), initial=0.0)) for name in _TIMES), default=0.0)
    if not end > 0:
        return None
    for at_s, batches in _slices(trace, end):
        stop = watch.look(batches)
        if stop is not None:
            return stop, at_s
    return None


def cut(trace: Trace, at_s: float) -> Trace:
    """The run as it would be had it been stopped then: what came later is gone, and who was there is cancelled."""
    tables: dict[str, pa.Table] = dict(trace.tables)
    for name, column in (("steps", "end_s"), ("memory", "t_s"), ("client", "t_s"), ("knobs", "sent_s")):
        table = tables[name]
        tables[name] = table.filter(pc.less_equal(table[column], at_s))
    kept = set(tables["steps"]["step"].to_pylist())
    batch = tables["batch"]
    tables["batch"] = batch.filter(pa.array([step in kept for step in batch["step"].to_pylist()], pa.bool_()))
    tokens = tables["tokens"]
    tables["tokens"] = tokens.filter(pa.array(_at(tokens, "tokens") <= at_s))
    rows = tables["requests"].to_pylist()
    tables["requests"] = pa.Table.from_pylist([_cut_off(row, at_s) for row in rows], tables["requests"].schema)
    return Trace(tables, {**trace.meta, "status": "cancelled"})


def _cut_off(row: Mapping[str, Any], at_s: float) -> dict[str, Any]:
    if row["done_s"] is not None and row["done_s"] <= at_s:
        return dict(row)
    later = {name: None for name in ("sent_s", "first_s", "last_s") if row[name] is not None and row[name] > at_s}
    gone = {"done_s": at_s, "last_s": None, "output_tokens": None, "finish_reason": None, "status": "cancelled"}
    return {**row, **later, **gone}


def _slices(trace: Trace, end: float) -> Iterator[tuple[float, list[Batch]]]:
    rows = {name: trace.tables[name].to_pylist() for name in _TIMES}
    at = {name: _at(trace.tables[name], name) for name in _TIMES}
    order = {name: np.argsort(times, kind="stable") for name, times in at.items()}
    sorted_at = {name: at[name][order[name]] for name in _TIMES}
    begin = dict.fromkeys(_TIMES, 0)
    for look in range(1, _LOOKS + 1):
        at_s = end * look / _LOOKS
        batches: list[Batch] = []
        for name in _TIMES:
            upto = int(np.searchsorted(sorted_at[name], at_s, side="right"))
            batches.append((name, [rows[name][i] for i in order[name][begin[name] : upto]]))
            begin[name] = upto
        yield at_s, batches


def _at(table: pa.Table, name: str) -> np.ndarray:
    """When each row came, s; NaN is never."""
    at = floats(table[_TIMES[name][0]])
    for column in _TIMES[name][1:]:
        at = np.where(np.isnan(at), floats(table[column]), at)
    return at
