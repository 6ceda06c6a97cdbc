"""The figures of each class of requests side by side: what a policy gave to whom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from workbench.config import SLO
from workbench.metrics.floors import FLOORS, request_floors
from workbench.metrics.gaps import Floats, Gaps, class_of
from workbench.metrics.preemptions import Preemptions
from workbench.metrics.requests import per_request
from workbench.metrics.stalls import find_stalls
from workbench.metrics.step_table import StepTable
from workbench.trace import Trace, floats

_COLUMNS = {
    "requests": "int64",
    "ttft_p50_s": float,
    "ttft_p99_s": float,
    "gap_p50_ms": float,
    "gap_p99_ms": float,
    "gap_max_ms": float,
    "goodput_per_s": float,
    "preemptions": "Int64",
    "recomputed_tokens": "Int64",
    "stalls": "Int64",
    "cached_tokens": "Int64",
    "compute_floor_s": float,
    "bandwidth_floor_s": float,
}


def by_class(trace: Trace, slo: SLO) -> pd.DataFrame:
    """Return one row a class, the most urgent priority first; the index is ``class``.

    Columns: ``requests``, ``ttft_p50_s``, ``ttft_p99_s`` (from the planned arrival), ``gap_p50_ms``, ``gap_p99_ms``,
    ``gap_max_ms`` (all gaps of the class pooled), ``goodput_per_s`` (requests a second that met the SLO),
    ``preemptions``, ``recomputed_tokens`` (computed again after them), ``stalls`` (gaps above the SLO),
    ``cached_tokens`` (of prompts, found in the prefix cache), ``compute_floor_s`` and ``bandwidth_floor_s`` (P50 of the
    least that their first tokens can take; see :func:`workbench.metrics.request_floors`). What was not measured is NaN
    or NA.
    """
    gaps, steps = Gaps.of(trace), StepTable.of(trace)
    lost = Preemptions.among(steps)
    stalled = find_stalls(trace, slo, gaps, steps, lost)
    figures = of_classes(trace, gaps, per_request(trace, slo, gaps), stalled, steps, lost, duration(trace, gaps))
    rows = {name: {column: figure.get(column) for column in _COLUMNS} for name, figure in figures.items()}
    frame = pd.DataFrame.from_dict(rows, orient="index", columns=list(_COLUMNS)).astype(_COLUMNS)
    return frame.rename_axis("class")


def of_classes(
    trace: Trace,
    gaps: Gaps,
    requests: pd.DataFrame,
    stalled: pd.DataFrame,
    steps: StepTable,
    lost: Preemptions,
    seconds: float | None,
) -> dict[str, dict[str, Any]]:
    """The figures of each class as plain data, the most urgent priority first; see :func:`workbench.metrics.summary`.

    Args:
        trace: the run.
        gaps: its gaps.
        requests: its requests, as :func:`workbench.metrics.request_metrics` gives them.
        stalled: its stalls.
        steps: its steps.
        lost: its preemptions.
        seconds: it took.
    """
    table = trace.tables["requests"]
    priority, cached = floats(table["priority"]), floats(table["cached_tokens"])
    classes = class_of(trace)
    victims = np.array([classes.get(steps.names[of]) for of in lost.of], dtype=object)
    of_gap, least = gaps.of_class[gaps.code], request_floors(trace, steps=steps)
    found: dict[str, tuple[float, dict[str, Any]]] = {}
    for place, name in enumerate(gaps.classes):
        rows = (requests["class"] == name).to_numpy()
        mine, hit = requests[rows], victims == name
        urgent = priority[rows][~np.isnan(priority[rows])]
        found[name] = (
            urgent.min() if len(urgent) else np.inf,
            {
                "requests": len(mine),
                **spread(gaps.gap_ms[of_gap == place], "gap", "ms"),
                **spread(mine["ttft_s"].to_numpy(), "ttft", "s"),
                "goodput_per_s": goodput(mine, gaps, seconds),
                "stalls": int((stalled["class"] == name).sum()) if arrivals_known(mine, gaps) else None,
                "preemptions": int(hit.sum()) if steps.records_victims else None,
                "recomputed_tokens": total(lost.recomputed[hit]) if steps.records_victims else None,
                "cached_tokens": total(cached[rows], none=None),
                **floors_p50(least[least["request"].isin(mine["request"])]),
            },
        )
    return {name: figures for name, (_, figures) in sorted(found.items(), key=lambda one: one[1][0])}


def floors_p50(least: pd.DataFrame) -> dict[str, float | None]:
    """Median floors of some requests, as :func:`workbench.metrics.request_floors` gives them; None is not known."""
    return {name: float(least[name].median()) if least[name].notna().any() else None for name in FLOORS}


def duration(trace: Trace, gaps: Gaps) -> float | None:
    """Seconds from the first send (or arrival, where nobody noted the send) to the last thing that happened."""
    table = trace.tables["requests"]
    sent = floats(table["sent_s"])
    begin = np.concatenate((sent, gaps.first_s))
    end = np.concatenate((sent, floats(table["done_s"]), gaps.last_s))
    begin, end = begin[~np.isnan(begin)], end[~np.isnan(end)]
    return float(end.max() - begin.min()) if len(begin) else None


def spread(values: Floats, name: str, unit: str) -> dict[str, Any]:
    """Count, P50, P90, P99 and maximum of what is not NaN, under the keys ``name_count``, ``name_p50_unit``, ..."""
    values = np.asarray(values, dtype=np.float64)
    known = values[~np.isnan(values)]
    keys = [f"{name}_{part}_{unit}" for part in ("p50", "p90", "p99", "max")]
    figures: list[float | None] = [None] * len(keys)
    if len(known):
        figures = np.percentile(known, (50, 90, 99, 100)).tolist()
    return {f"{name}_count": len(known), **dict(zip(keys, figures, strict=True))}


def rate(count: float, seconds: float | None) -> float | None:
    """Count a second; None where no time passed."""
    return float(count) / seconds if seconds else None


def goodput(requests: pd.DataFrame, gaps: Gaps, seconds: float | None) -> float | None:
    """Requests a second that met the SLO; None where nobody knows, and not 0."""
    well = requests[requests["status"] == "ok"]
    if len(well) and (well["ttft_s"].isna().all() or not arrivals_known(well, gaps)):
        return None
    return rate(requests["meets_slo"].sum(), seconds)


def arrivals_known(requests: pd.DataFrame, gaps: Gaps) -> bool:
    """Whether gaps can be judged: other tools' files may hold how much output came, and not when."""
    return bool(gaps.names) or not bool((requests["output_tokens"] > 1).any())


def total(values: Floats, none: int | None = 0) -> int | None:
    """Sum of what is not NaN; ``none`` where there is nothing."""
    known = values[~np.isnan(values)]
    return int(known.sum()) if len(known) else none
