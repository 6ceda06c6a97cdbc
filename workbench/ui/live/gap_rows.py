"""Rows of the live gap chart, from arrivals of output as they come."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from heapq import nlargest
from typing import Any

from workbench.config import SLO
from workbench.i18n import translate
from workbench.metrics.requests import LONG_PROMPT
from workbench.ui.charts.gap_marks import SHADE_LABELS, SHORTEST, prefill_words, readable, shortest_told
from workbench.ui.charts.gaps import STALLS
from workbench.ui.charts.knobs import RULES
from workbench.ui.live.changes import Row
from workbench.ui.live.chart_rows import ChartRows, Window, number
from workbench.ui.live.specs import OTHER, series_names
from workbench.ui.live.steps_in import Step

_NARROW_PX = 480  # width of a plot where two charts stand side by side, as in JupyterLab on a laptop


@dataclass
class _Span:
    """A long prompt being prefilled; without step records ``steps`` is None."""

    request: str
    tokens: int
    start_s: float
    end_s: float
    steps: int | None


class GapRows(ChartRows):
    """Datasets ``gaps``, ``stalls``, ``longest``, ``shades``, ``shade_labels``.

    Args:
        slo: the promise that makes a gap a stall.
        streams: request → class, of the requests that are planned.
        limit: most rows.
    """

    def __init__(self, slo: SLO, streams: Mapping[str, str], limit: int) -> None:
        super().__init__()
        self._slo = slo
        self._series, self._names = series_names(streams)
        self._last_s: dict[str, float] = {}  # last arrival of each stream
        self._ended: set[str] = set()  # streams that are forgotten once they have left the window
        stalls = min(STALLS, limit // 8)
        room = limit - stalls - RULES - SHADE_LABELS - 2
        self._gaps = self.thinner(room, series=len(self._names))
        self._stalls = self.thinner(stalls)
        self._prompts: dict[str, int] = {}
        self._open: dict[str, _Span] = {}
        self._spans: list[_Span] = []
        self._stepless = True

    def tokens(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take rows of the ``tokens`` table, those of one stream in order."""
        for row in rows:
            at, stream = number(row, "client_s"), row["request"]
            if at is None:
                continue
            begin, self._last_s[stream] = self._last_s.get(stream), at
            if begin is not None:
                self._gap(stream, begin, at, row["n"])

    def requests(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Take rows of the ``requests`` table, as far as they are filled in."""
        for row in rows:
            name, prompt = row["request"], row.get("prompt_tokens")
            if prompt is not None:
                self._prompts[name] = int(prompt)
            if row.get("class") is not None and name not in self._series:
                self._series[name] = row["class"] if row["class"] in self._names else OTHER
            if number(row, "done_s") is not None:
                self._ended.add(name)
            start, end = number(row, "sent_s"), number(row, "first_s", "done_s")
            if self._stepless and self._prompts.get(name, 0) >= LONG_PROMPT and start is not None and end is not None:
                self._spans.append(_Span(name, self._prompts[name], start, end, None))

    def step(self, step: Step) -> None:
        """Take a step: it may have carried a part of a long prompt."""
        if self._stepless:
            self._stepless, self._spans = False, []
        for part in step.parts:
            span = self._open.get(part.request)
            if not part.prefill:
                self._open.pop(part.request, None)
                continue
            if span is not None:
                span.end_s, span.steps = step.end_s, (span.steps or 0) + 1
                continue
            prompt = self._prompts.get(part.request, part.context + part.tokens)
            if prompt >= LONG_PROMPT:
                span = self._open[part.request] = _Span(part.request, prompt, step.start_s, step.end_s, 1)
                self._spans.append(span)

    def settle(self, window: Window) -> None:
        """Work out the datasets of a few rows."""
        self._spans = [span for span in self._spans if span.end_s >= window.low]
        self._open = {name: span for name, span in self._open.items() if span.end_s >= window.low}
        for name in [name for name in self._ended if self._last_s.get(name, -math.inf) < window.low]:
            self._ended.discard(name)
            self._last_s.pop(name, None)
        spans = nlargest(RULES, self._spans, key=lambda span: span.tokens)
        shades: list[Row] = [
            {
                "t": round(span.start_s, 4),
                "t2": round(span.end_s, 4),
                "what": prefill_words(span.request, span.tokens, span.steps),
            }
            for span in spans
        ]
        self.show("shades", shades)
        named = readable([(row["t"], row["t2"], row["what"]) for row in shades], window.low, window.high, _NARROW_PX)
        self.show("shade_labels", [shades[place] | {"line": line} for place, line in named.items()])
        worst = max(self._gaps.groups(), key=lambda group: group[0][1]["gap"], default=None)
        longest = []
        if worst is not None:
            row = worst[0][1]
            longest = [{"t": row["t"], "gap": row["gap"], "label": translate("max {gap:,.0f} ms", gap=row["gap"])}]
        self.show("longest", longest)

    def span_ms(self) -> tuple[float, float]:
        """What the y axis has to hold, ms: the shortest gap to tell, and the longest; with the SLO."""
        gaps = sorted([self._slo.gap_ms, *(group[0][1]["gap"] for group in self._gaps.groups())])
        return shortest_told(gaps[len(gaps) // 100], gaps[len(gaps) // 2]), gaps[-1]

    def _gap(self, stream: str, begin_s: float, at_s: float, n: int) -> None:
        gap = (at_s - begin_s) * 1000
        shown = max(round(gap, 2), SHORTEST)
        series = self._series.get(stream, OTHER)
        row = {"t": round(at_s, 4), "gap": shown, "stream": stream, "n": n, "series": series}
        self._gaps.offer(at_s, {series: gap}, self.group(("gaps", row)))
        if gap > self._slo.gap_ms:
            row = {"t": round(at_s, 4), "t0": round(begin_s, 4), "gap": shown, "stream": stream}
            self._stalls.offer(at_s, {"stalls": gap}, self.group(("stalls", row)))
