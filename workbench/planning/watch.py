"""Sees while a load is played that it fails, so that nobody waits for the rest of it."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

import pyarrow as pa
import pyarrow.compute as pc

from workbench.config import SLO
from workbench.planning.rule import Rule, counted_from
from workbench.simulate.job import Ask
from workbench.trace import Trace

_TIMES = ("first_s", "last_s", "done_s")


class Watch:
    """Finds the moment at which more requests have missed the SLO than the rule allows.

    That moment is one of simulated time and does not depend on when somebody looks. A gap percentile below 100 is known
    only at the end of a request: then late first tokens alone are counted.

    Attributes:
        failed_s: that moment; None as long as it has not come.

    Args:
        asks: that are played, in order of arrival.
        slo: the promise.
        rule: the rule.
    """

    def __init__(self, asks: Sequence[Ask], slo: SLO, rule: Rule) -> None:
        self.failed_s: float | None = None
        begin, end = counted_from(asks[-1].arrival_time)
        self._arrival = {one.request: one.arrival_time for one in asks if begin <= one.arrival_time <= end}
        self._allowed = floor((1 - rule.share) * len(self._arrival) + 1e-9)
        self._ttft_s = slo.ttft_ms / 1e3
        self._gap_s = slo.gap_ms / 1e3 if slo.gap_percentile >= 100 else float("inf")
        self._last: dict[str, float] = {}
        self._missed: dict[str, float] = {}  # when each did

    def look(self, tokens: pa.Table | None, now_s: float) -> bool:
        """Take new rows of the table ``tokens``; whether it has failed by ``now_s``, up to which they are complete."""
        if self.failed_s is not None:
            return True
        if tokens is not None:
            for name, at in zip(tokens["request"].to_pylist(), tokens["engine_s"].to_pylist(), strict=True):
                if name in self._arrival:
                    self._token(name, at)
        for name, at in self._arrival.items():
            if name not in self._last and at + self._ttft_s < now_s:
                self._missed[name] = at + self._ttft_s
        if len(self._missed) > self._allowed:
            self.failed_s = sorted(self._missed.values())[self._allowed]
        return self.failed_s is not None

    def _token(self, name: str, at: float) -> None:
        before = self._last.get(name)
        since, longest = (self._arrival[name], self._ttft_s) if before is None else (before, self._gap_s)
        self._last[name] = at
        if at - since > longest:
            self._missed.setdefault(name, since + self._ttft_s if before is None else at)


def as_of(trace: Trace, at_s: float) -> Trace:
    """What was known at a moment: requests that had not ended by then are unfinished."""
    tables = dict(trace.tables)
    for name, column in (("tokens", "engine_s"), ("steps", "end_s")):
        tables[name] = tables[name].filter(pc.less_equal(tables[name][column], at_s))
    table = tables["requests"]
    ended = pc.fill_null(pc.less_equal(table["done_s"], at_s), False)
    texts = {"status": pc.if_else(ended, table["status"], "unfinished")}
    texts["error"] = pc.if_else(ended, table["error"], pa.scalar(None, table["error"].type))
    for name in _TIMES:
        texts[name] = pc.if_else(pc.less_equal(table[name], at_s), table[name], pa.scalar(None, pa.float64()))
    for name, values in texts.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(name), values)
    tables["requests"] = table
    return Trace(tables, trace.meta)
