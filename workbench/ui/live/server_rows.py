"""Rows of the live charts of an attached server: what it says of itself, as it says it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workbench.i18n import translate
from workbench.ui.charts.server_rows import COUNTERS, ends, lost, quantile_rows, rates
from workbench.ui.live.changes import Row
from workbench.ui.live.chart_rows import ChartRows
from workbench.ui.live.step_rows import QueueRows

LIVE = ("ttft_s", "gap_s")  # histograms that are shown while a run goes on


class RateRows(ChartRows):
    """Dataset ``rates``.

    Args:
        limit: most rows.
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        self._rates = self.thinner(limit, series=len(COUNTERS), weight=2 * len(COUNTERS))
        self._before: Mapping[str, Any] | None = None
        self._begun: set[str] = set()  # series that have a row

    def take(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take rows of the ``server`` table, in order."""
        for row in rows:
            before, self._before = self._before, row
            if before is None:
                continue
            found, made = rates(before, row), list[tuple[str, Row]]()
            for series, rate in found.items():
                if series not in self._begun:  # a line needs two ends
                    made.append(("rates", _rate(before["t_s"], series, rate)))
                    self._begun.add(series)
                made.append(("rates", _rate(row["t_s"], series, rate)))
            self._rates.offer(row["t_s"], found, self.group(*made), len(made))

    def top(self) -> float:
        """Most tokens a second in sight; 0 where there is none."""
        return self._rates.largest(*COUNTERS) or 0.0


class ReadingRows(QueueRows):
    """Datasets ``kv``, ``requests``, ``losses``, from readings in place of steps."""

    def __init__(self, limit: int) -> None:
        super().__init__(limit)
        self._before: Mapping[str, Any] | None = None

    def take(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take rows of the ``server`` table, in order."""
        for row in rows:
            at_s = max(0.0, row["t_s"])  # the first is read before the run's zero
            self.state(at_s, at_s, row, lost(self._before, row), translate("not told"))
            self._before = row


class LatencyRows(ChartRows):
    """Dataset ``quantiles``: what the server's histograms have counted so far in this run.

    Attributes:
        histograms: as :func:`workbench.telemetry.metrics_page.quantiles` gives them; may be set when they change.
    """

    def __init__(self) -> None:
        super().__init__()
        self.histograms: Mapping[str, Any] | None = None
        self._span = (0.0, 0.0)

    def settle(self) -> None:
        """Put up what is known now."""
        rows = quantile_rows(self.histograms, LIVE)
        found = ends(rows)
        self._span = (min(found), max(found)) if found else (0.0, 0.0)
        self.show("quantiles", rows)

    def span(self) -> tuple[float, float]:
        """The shortest and the longest that is shown, s; 0 where there is nothing."""
        return self._span


def _rate(at_s: float, series: str, rate: float) -> Row:
    return {"t": round(max(0.0, at_s), 3), "series": series, "rate": round(rate, 2)}
