"""Two runs with the intervals of their ratios, as a table of a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import pandas as pd

from workbench.i18n import marked, translate
from workbench.report.details import Details, as_texts
from workbench.report.table import Column
from workbench.store.meta import plain

_WORDS = {
    "throughput": marked("computed tokens/s"),
    "goodput": marked("goodput, requests/s"),
    "gap_p50": marked("gap P50, ms"),
    "gap_p99": marked("gap P99, ms"),
    "gap_max": marked("longest gap, ms"),
    "ttft_p50": "TTFT P50, s",
    "ttft_p99": "TTFT P99, s",
    "long_ttft": marked("long prompt’s TTFT, s"),
}


class Compared(Protocol):
    """What is told of two runs: :class:`workbench.tune.compare.RecordedComparison`, or the one of rounds."""

    @property
    def verdict(self) -> Any:
        """With ``words``."""

    @property
    def table(self) -> pd.DataFrame:
        """One row a measure."""

    @property
    def concerns(self) -> Sequence[str]:
        """What a reader should know."""


@dataclass(frozen=True)
class Intervals:
    """What a report says of two runs.

    Attributes:
        verdict: in a sentence.
        table: one row a measure.
        concerns: what a reader should know.
    """

    verdict: str
    table: Details
    concerns: tuple[str, ...]


def intervals(compared: Compared | None, labels: Sequence[str]) -> Intervals | None:
    """The comparison as text; None without one, or where nothing could be compared.

    Args:
        compared: A and B.
        labels: their two names.
    """
    if compared is None or compared.table.empty:
        return None
    rows = [_row(row) for row in compared.table.reset_index().to_dict("records")]
    return Intervals(
        _sentence(translate(compared.verdict.words)),
        as_texts(_columns(labels), rows, several=False),
        tuple(_sentence(translate(concern)) for concern in compared.concerns),
    )


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + translate(".")


def _row(row: Mapping[str, Any]) -> dict[str, Any]:
    name = str(row["measure"])
    return {
        "setting": "",
        "measure": translate(_WORDS.get(name, name)),
        **{key: _short(float(row[key])) for key in ("a", "b")},
        "ratio": plain(row["ratio"]),
        "interval": translate("exact")
        if row["level"] == 1.0
        else translate(
            "{low:.3f} to {high:.3f} ({level:g} %)", low=row["low"], high=row["high"], level=100 * row["level"]
        ),
        "better": row["better"] or translate("no difference shown"),
    }


def _short(value: float) -> str:
    """Three or four digits that count."""
    return f"{value:,.{0 if value >= 100 else 1 if value >= 10 else 2}f}"


def _columns(labels: Sequence[str]) -> tuple[Column, ...]:
    return (
        Column("measure", "measure"),
        *(Column(key, f"{key.upper()}: {label}", "", 3) for key, label in zip("ab", labels, strict=True)),
        Column("ratio", "A / B", "", 3),
        Column("interval", "interval of the ratio"),
        Column("better", "better"),
    )
