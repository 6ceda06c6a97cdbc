"""The data of a run for download: all of it, or, where that is too much for a page, the rows that tell most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from workbench import metrics
from workbench.report.packed import pack_table
from workbench.report.run import ReportRun
from workbench.report.thinning import thin
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
_MOST_ROWS = 400_000  # of a table: more would hardly fit
_LEAST_ROWS = 500
_TRIES = 6


@dataclass(frozen=True)
class Packed:
    """One table of one run.

    Attributes:
        rows: in the page.
        of: in the run.
        data: see :func:`workbench.report.packed.pack_table`.
    """

    rows: int
    of: int
    data: str

    def as_dict(self) -> dict[str, int | str]:
        """Plain data."""
        return {"rows": self.rows, "of": self.of, "data": self.data}


def tables_of(run: ReportRun) -> dict[str, pd.DataFrame]:
    """The run's gaps, stalls, steps, requests, phases, preemptions and knob revisions. Times are s from its zero."""
    gaps = metrics.gaps(run.trace)[["request", "class", "index", "n", "at_s", "gap_ms", "engine_gap_ms"]]
    steps = timeline(run.trace)
    columns = ["step", "start", "end", "prefill_tokens", "decode_tokens", "running", "waiting", "kv_use", "revision"]
    steps = steps[[*columns, "activation_mib"]].rename(columns={"start": "start_s", "end": "end_s"})
    return {
        "gaps": gaps.sort_values(["request", "index"], kind="stable"),
        "stalls": metrics.stalls(run.trace, run.slo),
        "steps": steps,
        "requests": metrics.request_metrics(run.trace, run.slo),
        "phases": metrics.phases(run.trace),
        "preemptions": metrics.preemptions(run.trace),
        "knobs": run.trace.knobs,
    }


def pack_runs(runs: Sequence[ReportRun], room: int) -> list[dict[str, Packed]]:
    """The tables of all runs, packed; together about ``room`` characters at most.

    Times are rounded to 0.1 ms, gaps to 1 µs. Where all rows are too many, the limit of rows of every table is lowered
    until they fit; see :mod:`workbench.report.thinning` for what is kept.

    Args:
        runs: of the report.
        room: characters.
    """
    tables = [tables_of(run) for run in runs]
    longest = max(len(frame) for one in tables for frame in one.values())
    limit = min(longest, _MOST_ROWS)
    for _ in range(_TRIES):
        packed = [_pack(one, limit, run.slo.gap_ms) for one, run in zip(tables, runs, strict=True)]
        size = sum(len(table.data) for one in packed for table in one.values())
        if size <= room or limit <= _LEAST_ROWS:
            break
        limit = max(_LEAST_ROWS, int(0.9 * limit * room / size))
    return packed


def _pack(tables: Mapping[str, pd.DataFrame], limit: int, gap_ms: float) -> dict[str, Packed]:
    out = {}
    for name, frame in tables.items():
        kept = thin(name, frame, limit, gap_ms)
        out[name] = Packed(len(kept), len(frame), pack_table(kept, _DECIMALS))
    return out
