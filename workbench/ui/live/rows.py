"""From the rows of a run to the rows of its charts, as they come: plain Python on what is new."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.config import SLO
from workbench.ui.live.changes import Changes
from workbench.ui.live.chart_rows import ChartRows, Window
from workbench.ui.live.gap_rows import GapRows
from workbench.ui.live.knob_rows import KnobRows
from workbench.ui.live.server_rows import LatencyRows, RateRows, ReadingRows
from workbench.ui.live.specs import SIGNALS
from workbench.ui.live.step_rows import MakeUpRows, MemoryRows, QueueRows
from workbench.ui.live.steps_in import StepsIn
from workbench.ui.live.tops import Top, decade

LIMIT = 2000  # rows in one chart: what a browser redraws ten times a second


class LiveRows:
    """The rows of the charts of :func:`workbench.ui.live.specs.live_charts`, for one run and one window length.

    Another run or another length needs another one, which may take all rows of the run at once: what is long past
    costs little.

    Args:
        window_s: how much of the run's time the charts show.
        slo: the promise that makes a gap a stall.
        streams: request → class, of the requests that are planned.
        memory_split: bytes of what the engine's memory is made of (``weights_bytes``, ``kv_bytes``, ``graphs_bytes``);
            an engine tells it with its first step, see :attr:`memory_split`.
        limit: most rows of one chart, at least 1,000.
        attached: whether there are no steps, but what a server says of itself.
    """

    def __init__(
        self,
        window_s: float,
        slo: SLO,
        streams: Mapping[str, str],
        memory_split: Mapping[str, Any] | None = None,
        limit: int = LIMIT,
        *,
        attached: bool = False,
    ) -> None:
        self._window_s = window_s
        self._inbox: deque[tuple[str, Sequence[Mapping[str, Any]]]] = deque()
        self._steps, self._knobs = StepsIn(), KnobRows()
        self._gaps, self._make_up = GapRows(slo, streams, limit), MakeUpRows(limit)
        self._memory, self._queue = MemoryRows(limit, memory_split), QueueRows(limit)
        self._charts: dict[str, ChartRows] = {
            "gaps": self._gaps,
            "steps": self._make_up,
            "memory": self._memory,
            "queue": self._queue,
        }
        self._rates, self._readings, self._latency = RateRows(limit), ReadingRows(limit), LatencyRows()
        if attached:
            self._charts = {
                "gaps": self._gaps,
                "rates": self._rates,
                "queue": self._readings,
                "latency": self._latency,
            }
        self._tops = {
            "gap_hi": Top(SIGNALS["gap_hi"], room=5.0),
            "tokens_top": Top(SIGNALS["tokens_top"], room=1.3),
            "ms_hi": Top(SIGNALS["ms_hi"], up=decade),
            "mib_top": Top(SIGNALS["mib_top"], room=1.15),
            "gib_top": Top(SIGNALS["gib_top"], room=1.15),
            "requests_top": Top(SIGNALS["requests_top"], room=1.2),
            "rate_top": Top(SIGNALS["rate_top"], room=1.15),
            "lat_hi": Top(SIGNALS["lat_hi"], up=decade),
        }
        # A lower end is the inverse of an upper one.
        self._lows = {name: Top(1 / SIGNALS[name], up=decade) for name in ("gap_lo", "ms_lo", "lat_lo")}

    @property
    def memory_split(self) -> Mapping[str, Any] | None:
        """What the engine's memory is made of; may be set when it becomes known."""
        return self._memory.split

    @memory_split.setter
    def memory_split(self, split: Mapping[str, Any] | None) -> None:
        self._memory.split = split

    @property
    def histograms(self) -> Mapping[str, Any] | None:
        """What an attached server's histograms have counted so far; may be set when it changes."""
        return self._latency.histograms

    @histograms.setter
    def histograms(self, found: Mapping[str, Any] | None) -> None:
        self._latency.histograms = found

    def take(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take rows of one table of the trace, as a sink gets them; from any thread, and at once."""
        self._inbox.append((table, rows))

    def changes(self, now_s: float) -> Changes:
        """What is new since the last call; to be called from one thread.

        Args:
            now_s: seconds since the run's zero; the window ends there, once the run has filled it.
        """
        low = max(0.0, now_s - self._window_s)
        window = Window(low, low + self._window_s)
        for chart in self._charts.values():
            chart.trim(low)
        while self._inbox:
            self._read(*self._inbox.popleft())
        for step in self._steps.ready():
            self._gaps.step(step)
            self._make_up.step(step, window)
            self._memory.step(step, window)
            self._queue.step(step)
        self._gaps.settle(window)
        self._make_up.settle()
        self._memory.settle()
        self._latency.settle()
        rules, labels = self._knobs.shown(window)
        add, drop = {}, {}
        for name, chart in self._charts.items():
            chart.show("rules", rules)
            chart.show("rule_labels", labels)
            came, went = chart.drain()
            if came:
                add[name] = came
            if went:
                drop[name] = went
        return Changes(add, drop, {"t0": window.low, "t1": window.high, **self._axes(now_s)})

    def _read(self, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
        match table:
            case "tokens":
                self._gaps.tokens(rows)
            case "requests":
                self._gaps.requests(rows)
                self._make_up.requests(rows)
            case "steps":
                self._steps.take_steps(rows)
            case "batch":
                self._steps.take_batch(rows)
            case "memory":
                self._memory.samples(rows)
            case "server":
                self._rates.take(rows)
                self._readings.take(rows)
            case "knobs":
                self._knobs.take(rows)

    def _axes(self, now_s: float) -> dict[str, float]:
        shortest_gap, longest_gap = self._gaps.span_ms()
        tokens, shortest, longest = self._make_up.tops()
        peak, held = self._memory.tops()
        quick, slow = self._latency.span()
        largest = {
            "gap_hi": longest_gap,
            "tokens_top": tokens,
            "ms_hi": longest,
            "mib_top": peak,
            "gib_top": held,
            "requests_top": max(self._queue.top(), self._readings.top()),
            "rate_top": self._rates.top(),
            "lat_hi": slow,
        }
        smallest = {"gap_lo": shortest_gap, "ms_lo": shortest, "lat_lo": quick}
        found = {name: self._tops[name].follow(value, now_s) for name, value in largest.items()}
        for name, value in smallest.items():
            found[name] = 1 / self._lows[name].follow(1 / value if value else 0.0, now_s)
        return found
