"""A recorded run: its folder as tables and figures. One that goes on is a :class:`workbench.run.Run`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from workbench import metrics
from workbench.config import SLO
from workbench.store import open_run
from workbench.trace import Trace
from workbench.units import MIB

_KPIS = (
    "gap_p50_ms",
    "gap_p99_ms",
    "gap_max_ms",
    "ttft_p50_s",
    "ttft_max_s",
    "ttft_sent_p50_s",
    "stalls",
    "output_tokens_per_s",
    "goodput_per_s",
    "preemptions",
    "peak_activation_mib",
    "schedule_lag_max_s",
)


class RecordedRun:
    """A run on disk, complete or not.

    Args:
        folder: the run folder.

    Raises:
        RunNotFoundError: it is not a run.
        StoreError: it cannot be read.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self._trace: Trace | None = None

    def __repr__(self) -> str:
        meta = self.meta
        setting = f" under {meta['setting']}" if meta.get("setting") else ""
        return f"<run {self.folder.name}: {meta.get('scenario')}{setting}, {meta.get('label')}, {meta['status']}>"

    @property
    def trace(self) -> Trace:
        """All tables of the run; while it goes on, as far as they are on disk."""
        if self._trace is None or self._trace.meta["status"] == "running":
            self._trace = open_run(self.folder)
        return self._trace

    @property
    def meta(self) -> Mapping[str, Any]:
        """What the run was: scenario, setting, engine, machine, versions, status."""
        return self.trace.meta

    @property
    def slo(self) -> SLO:
        """The latency promise that the run is held against."""
        return SLO.model_validate(self.meta.get("slo") or {})

    @property
    def summary(self) -> dict[str, Any]:
        """All figures of the run; see :func:`workbench.metrics.summary`."""
        return metrics.summary(self.trace, self.slo)

    @property
    def kpis(self) -> pd.DataFrame:
        """The figures that people look at first, one row a figure; its unit stands in its name."""
        figures = self.summary
        peak = figures["peak_activation_bytes"]
        figures["peak_activation_mib"] = None if peak is None else peak / MIB
        return pd.DataFrame({"value": [figures.get(name) for name in _KPIS]}, index=pd.Index(_KPIS, name="figure"))

    @property
    def requests(self) -> pd.DataFrame:
        """One row a request, with TTFT, TPOT and worst gap, and the floors of its TTFT where they are known."""
        table, floors = metrics.request_metrics(self.trace, self.slo), self.floors
        if floors.empty:
            return table
        return table.merge(floors[["request", "compute_floor_s", "bandwidth_floor_s"]], on="request", how="left")

    @property
    def floors(self) -> pd.DataFrame:
        """One row a request: the least that its first token can take; see :func:`workbench.metrics.request_floors`."""
        return metrics.request_floors(self.trace)

    @property
    def tokens(self) -> pd.DataFrame:
        """One row an arrival of output."""
        return self.trace.tokens

    @property
    def steps(self) -> pd.DataFrame:
        """One row a scheduler step."""
        return self.trace.steps

    @property
    def memory(self) -> pd.DataFrame:
        """One row a memory sample."""
        return self.trace.memory

    @property
    def stalls(self) -> pd.DataFrame:
        """Every gap above the SLO, with its cause, and the step and the request behind it."""
        return metrics.stalls(self.trace, self.slo)

    @property
    def classes(self) -> pd.DataFrame:
        """One row a class of traffic, the most urgent first: TTFT, gaps, goodput, preemptions."""
        return metrics.by_class(self.trace, self.slo)

    @property
    def history(self) -> pd.DataFrame:
        """One row a phase of a request: queued, prefill, decode, preempted, recompute."""
        return metrics.phases(self.trace)

    @property
    def preemptions(self) -> pd.DataFrame:
        """One row a preemption: who lost how many tokens of KV, and when it was back."""
        return metrics.preemptions(self.trace)

    @property
    def mfu(self) -> pd.DataFrame:
        """One row a step: FLOPs, time and the share of the peak; empty where model or peak is not known."""
        return metrics.mfu(self.trace)
