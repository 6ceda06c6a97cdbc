"""The data of a run for download, column by column: nothing thinned out."""

from __future__ import annotations

from typing import Any

import pandas as pd

from workbench import metrics
from workbench.report.run import ReportRun
from workbench.store.folder import plain
from workbench.ui.charts.data import timeline

_DECIMALS = {
    "at_s": 4,
    "gap_ms": 3,
    "engine_gap_ms": 3,
    "start_s": 4,
    "end_s": 4,
    "activation_mib": 3,
    "kv_use": 4,
    "begin_s": 4,
    "away_s": 4,
    "recovered_s": 4,
}


def download_data(run: ReportRun) -> dict[str, dict[str, list[Any]]]:
    """The run's gaps, stalls, steps, requests, phases, preemptions and knob revisions, column by column.

    Times are seconds from the run's zero, rounded to 0.1 ms; gaps to 1 µs.
    """
    gaps = metrics.gaps(run.trace)[["request", "class", "index", "n", "at_s", "gap_ms", "engine_gap_ms"]]
    steps = timeline(run.trace)
    columns = ["step", "start", "end", "prefill_tokens", "decode_tokens", "running", "waiting", "kv_use", "revision"]
    steps = steps[[*columns, "activation_mib"]].rename(columns={"start": "start_s", "end": "end_s"})
    tables = {
        "gaps": gaps,
        "stalls": metrics.stalls(run.trace, run.slo),
        "steps": steps,
        "requests": metrics.request_metrics(run.trace, run.slo),
        "phases": metrics.phases(run.trace),
        "preemptions": metrics.preemptions(run.trace),
        "knobs": run.trace.knobs,
    }
    return {name: _columns(frame) for name, frame in tables.items()}


def _columns(frame: pd.DataFrame) -> dict[str, list[Any]]:
    rounded = frame.round({name: digits for name, digits in _DECIMALS.items() if name in frame})
    floats = [name for name in rounded if rounded[name].dtype.kind == "f" and name not in _DECIMALS]
    rounded[floats] = rounded[floats].round(5)
    return {str(name): [plain(v) for v in _nulls(rounded[name])] for name in rounded}


def _nulls(column: pd.Series) -> list[Any]:
    """Values with every kind of missing as None, and whole numbers as such."""
    values: list[Any] = column.astype(object).where(column.notna(), None).tolist()
    known = [v for v in values if v is not None]
    if column.dtype.kind == "f" and known and all(float(v).is_integer() for v in known):
        return [None if v is None else int(v) for v in values]
    return values
