"""What the client says of itself: how late it was, so that a reader can tell the meter from what it measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.i18n import translate
from workbench.report.details import Details, as_texts
from workbench.report.run import ReportRun
from workbench.report.table import Column
from workbench.trace import floats

_COLUMNS = (
    Column("late_readings", "times that it ran late", "", 0),
    Column("late_max_ms", "longest of them", "ms", 1),
    Column("late_share", "of the run’s time", "%", 2),
    Column("lag_p50_ms", "gap at the client less that in the engine, P50", "ms", 2),
    Column("lag_p99_ms", "P99", "ms", 1),
    Column("schedule_lag_max_s", "latest send", "s", 3),
    Column("blamed", "stalls put down to the client", "", 0),
    Column("dropped", "records of the probe lost", "", 0),
)
_SUSPECT = 0.01  # of the time: with more, percentiles of gaps may be the client's own


def self_check(runs: Sequence[ReportRun]) -> tuple[Details | None, str]:
    """How late the client's own event loop ran, in figures and in a sentence.

    None where nobody measured it: simulated runs have no client.
    """
    rows = [(run.label, _figures(run)) for run in runs if run.trace.tables["client"].num_rows]
    if not rows:
        return None, translate(
            "These runs have no client: nothing was sent, and output counts as arrived when it is made."
        )
    late = max(rows, key=lambda row: row[1]["late_max_ms"])
    worst = max(float(row["late_share"]) for _, row in rows)
    verdict = (
        translate("The client kept up: what is slow here is the engine.")
        if worst <= 100 * _SUSPECT
        else translate("The client itself was late often; take gaps near that length with care.")
    )
    which = translate(" (“{label}”)", label=late[0]) if len(runs) > 1 else ""
    worst_ms = late[1]["late_max_ms"]
    said = verdict + translate(
        " At worst its event loop came {worst:,.1f} ms late{which}.", worst=worst_ms, which=which
    )
    return as_texts(_COLUMNS, [{"setting": label, **row} for label, row in rows], len(runs) > 1), said


def _figures(run: ReportRun) -> dict[str, Any]:
    """One row of the table. Readings of at least 5 ms are on record, and the first, whatever it is."""
    late = floats(run.trace.tables["client"]["late_s"])
    figures = run.figures
    causes = figures.get("stall_causes") or {}
    return {
        "late_readings": len(late),
        "late_max_ms": 1000 * float(late.max()),
        "late_share": 100 * float(late.sum()) / max(float(figures.get("duration_s") or 0.0), 1e-9),
        "lag_p50_ms": figures.get("lag_p50_ms"),
        "lag_p99_ms": figures.get("lag_p99_ms"),
        "schedule_lag_max_s": figures.get("schedule_lag_max_s"),
        "blamed": int(causes.get("client", 0)),
        "dropped": (run.trace.meta.get("engine") or {}).get("probe_dropped"),
    }
