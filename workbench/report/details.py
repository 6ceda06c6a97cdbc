"""Smaller tables of a report: stalls by cause, and figures by class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from workbench import metrics
from workbench.i18n import translate
from workbench.report.run import ReportRun
from workbench.report.table import Column
from workbench.store.meta import plain
from workbench.ui.charts.policy_table import ALL, policy_table

_CAUSE_COLUMNS = (
    Column("cause", "cause"),
    Column("stalls", "stalls", "", 0),
    Column("share", "of all stalls", "%", 0),
    Column("longest_ms", "longest", "ms", 0),
    Column("together_s", "stood still, all streams", "s", 2),
    Column("detail", "the longest of them"),
)
_CLASS_COLUMNS = (
    Column("class", "class"),
    Column("requests", "requests", "", 0),
    Column("ttft_p50_s", "TTFT P50", "s", 2),
    Column("ttft_p99_s", "TTFT P99", "s", 2),
    Column("gap_p50_ms", "gap P50", "ms", 0),
    Column("gap_p99_ms", "gap P99", "ms", 0),
    Column("gap_max_ms", "longest gap", "ms", 0),
    Column("stalls", "stalls", "", 0),
    Column("goodput_per_s", "goodput", "requests/s", 2),
    Column("preemptions", "preemptions", "", 0),
    Column("recomputed_tokens", "computed again", "tokens", 0),
    Column("mfu_percent", "MFU", "%", 1),
)
_NOT_OF_A_CLASS = ("mfu_percent",)


@dataclass(frozen=True)
class Details:
    """A table under a section's heading, as text.

    Attributes:
        columns: with headings and units.
        rows: a text for each column; None where a figure does not apply.
    """

    columns: tuple[Column, ...]
    rows: list[list[str | None]]


def stalls_by_cause(runs: Sequence[ReportRun]) -> tuple[Details | None, str]:
    """What the stalls of each run were caused by, and a sentence that says which share is explained.

    None where no run has a stall.
    """
    rows, said = [], []
    for run in runs:
        stalls = metrics.stalls(run.trace, run.slo)
        share = metrics.explained(stalls)
        if share is not None:
            part = translate("{share:.0f} % of {count:,}", share=100 * share, count=len(stalls))
            said.append(part + (translate(" (“{label}”)", label=run.label) if len(runs) > 1 else ""))
        for cause in metrics.CAUSES:
            mine = stalls[stalls["cause"] == cause]
            if len(mine):
                rows.append(_cause(run.label, cause, mine, len(stalls)))
    if not rows:
        return None, ""
    return as_texts(_CAUSE_COLUMNS, rows, len(runs) > 1), translate(
        "Explained: {shares}.", shares=translate(", ").join(said)
    )


def _cause(label: str, cause: str, stalls: pd.DataFrame, of: int) -> dict[str, Any]:
    worst = stalls.loc[stalls["gap_ms"].idxmax()]
    return {
        "setting": label,
        "cause": translate(cause),
        "stalls": len(stalls),
        "share": 100 * len(stalls) / of,
        "longest_ms": float(worst["gap_ms"]),
        "together_s": float(stalls["gap_ms"].sum()) / 1000,
        "detail": f"{worst['request']}{translate(': ')}{translate(worst['detail'] or '')}",
    }


def figures_by_class(runs: Sequence[ReportRun]) -> Details | None:
    """Figures of each class in each run, and of all requests; columns that nothing is known of are left out."""
    table = policy_table({run.label: run.trace for run in runs}, runs[0].slo).reset_index()
    table = table.rename(columns={"policy": "setting"}).assign(mfu_percent=100 * table["mfu"])
    if (table["class"] == ALL).all():
        return None
    table["class"] = table["class"].replace(ALL, translate(ALL))
    table = table.dropna(axis="columns", how="all")
    columns = tuple(column for column in _CLASS_COLUMNS if column.key in table)
    return as_texts(columns, table.to_dict("records"), len(runs) > 1)


def as_texts(columns: tuple[Column, ...], rows: Sequence[dict[str, Any]], several: bool) -> Details:
    """The rows as text.

    Args:
        columns: of the table.
        rows: with the name of their run under ``setting``.
        several: whether there are several runs: then the setting stands first, once for its rows.
    """
    shown = (Column("setting", "setting"), *columns) if several else columns
    texts: list[list[str | None]] = []
    before = None
    for row in rows:
        lacks = set(_NOT_OF_A_CLASS) if row.get("class") not in (None, translate(ALL)) else set()
        lacks |= {"setting"} if row["setting"] == before else set()
        texts.append([None if column.key in lacks else column.text(plain(row.get(column.key))) for column in shown])
        before = row["setting"]
    return Details(shown, texts)
