"""Knob revisions as rows of a live chart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from workbench.i18n import translate
from workbench.ui.charts.data import further
from workbench.ui.charts.knobs import LABEL_WIDTH, RULES
from workbench.ui.live.changes import Row
from workbench.ui.live.chart_rows import Window, number


class KnobRows:
    """Puts the rows of the ``knobs`` table together: what was sent, and later when it came into force."""

    def __init__(self) -> None:
        self._knobs: dict[int, dict[str, Any]] = {}

    def take(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take rows of the ``knobs`` table, as far as they are filled in."""
        for row in rows:
            known = self._knobs.setdefault(row["revision"], {})
            known.update((name, value) for name, value in row.items() if value is not None)

    def shown(self, window: Window) -> tuple[list[Row], list[Row]]:
        """Rows of ``rules`` and ``rule_labels``; of revisions before the window only the last, which is in force."""
        timed = [(at, row) for row in self._knobs.values() if (at := number(row, "applied_s", "sent_s")) is not None]
        timed.sort(key=lambda pair: (pair[0], pair[1]["revision"]))
        early = sum(at <= window.low for at, _ in timed)
        for _, row in timed[: max(0, early - 1)]:
            del self._knobs[row["revision"]]
        kept = timed[max(0, early - 1) :][-RULES:]
        rules = [_rule(max(at, 0.0), row) for at, row in kept]
        places = [max(at, window.low) for at, _ in kept]
        room = LABEL_WIDTH * window.pixel
        fits = [after - place >= room for place, after in pairwise(places)]
        return rules, [rule for rule, fit in zip(rules, [*fits, True][: len(rules)], strict=True) if fit]


def _rule(at_s: float, row: Mapping[str, Any]) -> Row:
    chunk, every = row.get("chunk") or 0, row.get("prefill_every") or 0
    return {
        "t": at_s,
        "label": translate("rev {n}", n=row["revision"]),
        "revision": row["revision"],
        "policy": row.get("policy"),
        "budget": row.get("budget"),
        "chunk": f"{chunk:,.0f}" if chunk else translate("off"),
        "running cap": row.get("max_running"),
        "prefill every": translate("{n:,.0f} steps", n=every) if every else "-",
        "also": further(row),
    }
