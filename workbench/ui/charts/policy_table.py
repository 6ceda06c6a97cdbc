"""Policies side by side as figures: one row a policy and class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from workbench import metrics
from workbench.config import SLO
from workbench.i18n import marked
from workbench.trace import Trace

ALL = marked("all")  # the class that stands for all requests of a policy
COLUMNS = (
    "requests",
    "ttft_p50_s",
    "ttft_p99_s",
    "gap_p50_ms",
    "gap_p99_ms",
    "gap_max_ms",
    "stalls",
    "goodput_per_s",
    "preemptions",
    "recomputed_tokens",
    "mfu",
    "compute_floor_s",
    "bandwidth_floor_s",
)


def policy_table(runs: Mapping[str, Trace], slo: SLO) -> pd.DataFrame:
    """Figures of each class under each policy, and of all requests; what was not measured is NaN.

    Columns: ``requests``, ``ttft_p50_s`` and ``ttft_p99_s`` (from the planned arrival), ``gap_p50_ms``, ``gap_p99_ms``
    and ``gap_max_ms`` (all gaps pooled), ``stalls``, ``goodput_per_s``, ``preemptions``, ``recomputed_tokens``, and
    ``mfu``: the share of the peak while steps ran, known of a policy (class :data:`ALL`) and not of a class; then
    ``compute_floor_s`` and ``bandwidth_floor_s``, the least that half of the first tokens can take on that hardware
    (:func:`workbench.metrics.request_floors`).

    Args:
        runs: policy's name → its run, of the same load.
        slo: the promise that stalls and goodput are held against.

    Returns:
        A frame with the index ``policy``, ``class``; the most urgent class first, then :data:`ALL`.
    """
    rows: list[dict[str, Any]] = []
    for policy, trace in runs.items():
        classes = metrics.by_class(trace, slo)
        rows += [{"policy": policy, "class": str(name), **row} for name, row in classes.to_dict("index").items()]
        whole = metrics.summary(trace, slo)
        again = classes["recomputed_tokens"].sum(min_count=1) if len(classes) else None
        rows.append({**whole, "policy": policy, "class": ALL, "recomputed_tokens": again, "mfu": run_mfu(trace)})
    table = pd.DataFrame(rows, columns=["policy", "class", *COLUMNS])
    figures = table[list(COLUMNS)]
    table[list(COLUMNS)] = figures.astype(object).where(figures.notna(), np.nan).astype(float)  # NA is no float
    return table.set_index(["policy", "class"])


def run_mfu(trace: Trace) -> float | None:
    """MFU of a run over the time in which steps ran; None is not known."""
    kinds = metrics.mfu_by_kind(trace)
    share = float(kinds["mfu"].get("all", np.nan))
    return None if np.isnan(share) else share
