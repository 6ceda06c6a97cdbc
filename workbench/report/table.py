"""The comparison table: its columns, and how a figure is written. Writer and verifier share this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.i18n import marked, translate
from workbench.store.meta import plain

NOT_MEASURED = marked("n/a")


@dataclass(frozen=True)
class Column:
    """One column of the comparison table.

    Attributes:
        key: of the row.
        heading: what stands on top.
        unit: below it; empty for none.
        digits: after the point; none is text.
        bar: CSS colour variable of the bar behind the figure; empty for no bar.
    """

    key: str
    heading: str
    unit: str = ""
    digits: int | None = None
    bar: str = ""

    def text(self, value: Any) -> str:
        """Write a value of this column in the language that is spoken; None is "n/a", never 0."""
        if value is None:
            return translate(NOT_MEASURED)
        if self.key == "chunk" and value == 0:
            return translate("off")
        if self.digits is None or isinstance(value, str):
            return str(value).replace("_", " ")
        return f"{value:,.{self.digits}f}"


COLUMNS = (
    Column("policy", "policy"),
    Column("budget", "budget", "tokens", 0),
    Column("chunk", "chunk", "tokens", 0),
    Column("long_ttft_s", "long prompt’s TTFT", "s", 1, "prefill"),
    Column("gap_p50_ms", "gap P50", "ms", 0),
    Column("gap_p99_ms", "gap P99", "ms", 0),
    Column("gap_max_ms", "longest gap", "ms", 0, "alert"),
    Column("stalls", "stalls", "", 0),
    Column("peak_activation_mib", "activation peak", "MiB", 1, "memory"),
)


@dataclass(frozen=True)
class Cell:
    """One cell: its column, the value as JSON holds it, the text, and the width of its bar in per cent."""

    column: Column
    value: Any
    text: str
    bar: float | None


def cells(row: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> list[Cell]:
    """The cells of ``row``, with bars on one linear scale over all ``rows`` (none for a single row)."""
    out = []
    for column in COLUMNS:
        value = plain(row.get(column.key))
        bar = None
        if column.bar and value is not None and len(rows) > 1:
            top = max(plain(r.get(column.key)) or 0 for r in rows)
            bar = round(100 * value / top, 2) if top else 0.0
        out.append(Cell(column, value, column.text(value), bar))
    return out
