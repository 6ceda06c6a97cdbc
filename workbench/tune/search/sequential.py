"""Says as early as can be that a trial cannot meet its limits any more, with a stated error rate.

Each limit is a count: of ``n`` gaps (or first tokens) that a run will have, at most ``k`` may lie above it, ``k`` being
what the percentile allows, 0 for a maximum. ``n`` is known, since the workload's output lengths are. Two rules stop:

* More than ``k`` lie above it. The rest of the run cannot change that: no error.
* A test martingale for draws without replacement passes 1 / error rate: the chance of another draw above the limit is
  at most (k - seen above) / (n - seen) in a run that ends within it, and the wealth of a bet against that passes 1 / a
  in at most a share a of such runs (Ville's inequality; Stark, "ALPHA: audit that learns from previously hand-audited
  ballots", Annals of Applied Statistics 17, 2023, after Wald's sequential probability ratio test, 1945). The bet is
  spread over several shares above the allowed one. Gaps must come in random order for it; they do so only roughly, as
  one long prompt stalls many streams at once, so it waits until a quarter of all are known. An error rate of 0 leaves
  the first rule alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log
from typing import Any

import numpy as np

from workbench.errors import InputError
from workbench.tail import Batch
from workbench.tune.goal import Goal, Limit
from workbench.tune.trial import Stop
from workbench.workload.request import Workload

ERROR_RATE = 0.01
BEST = "the best so far"
_BETS = (2.0, 5.0, 15.0, 40.0)  # times the allowed share
_MOST_BET = 0.9
_KNOWN = 0.25  # share of all that is known before the martingale may stop
_LATE_S = 0.5  # rows of one moment come in at most so far apart
_TINY = 1e-9
_LEAST_EXCESS = 0.01


class Count:
    """Counts what lies above one limit.

    Args:
        limit: the largest value.
        total: values that the run will have, at most.
        share: of them that may lie above the limit; 0 for a maximum.
        error_rate: of the martingale; 0 leaves it out.
    """

    def __init__(self, limit: float, total: int, share: float, error_rate: float) -> None:
        self.limit, self.total = limit, total
        self.allowed = total - 1 - floor(round((1 - share) * (total - 1), 6)) if total else 0
        self.known = 0
        self._over: list[float] = []
        self._least = log(1 / error_rate) if error_rate > 0 and self.allowed else None
        self._bets = [min(share * times, _MOST_BET) for times in _BETS]
        self._wealth = np.full(len(_BETS), -log(len(_BETS)))  # logarithms

    @property
    def over(self) -> int:
        """Values above the limit so far."""
        return len(self._over)

    def take(self, value: float) -> None:
        """Take one more value, in the order in which they come."""
        above = value > self.limit
        if self._least is not None:
            left = self.total - self.known
            allowed = min(max((self.allowed - self.over) / left, _TINY), 1 - _TINY) if left > 0 else 1 - _TINY
            for place, share in enumerate(self._bets):
                bet = max(share, allowed)
                self._wealth[place] += log(bet / allowed) if above else log((1 - bet) / (1 - allowed))
        self.known += 1
        if above:
            self._over.append(value)

    @property
    def certain(self) -> bool:
        """Whether the run must end above the limit, whatever comes."""
        return self.over > self.allowed

    @property
    def likely(self) -> bool:
        """Whether the martingale says so."""
        if self._least is None or self.known < _KNOWN * self.total:
            return False
        return float(np.logaddexp.reduce(self._wealth)) >= self._least

    @property
    def excess(self) -> float:
        """The percentile of what is known over the limit, minus 1; a little above 0 where that is still below."""
        above = sorted(self._over, reverse=True)
        rank = floor(self.allowed / max(self.total, 1) * self.known)
        value = above[rank] if rank < len(above) else self.limit
        return max(value / self.limit - 1, _LEAST_EXCESS)


class Sequential:
    """Watches a trial; see :class:`workbench.tune.trial.Watch`.

    Args:
        goal: whose limits are looked at.
        error_rate: largest share of trials within their limits that may be stopped; limits share it.
        beat: a goodput (requests/s) to beat: a trial that cannot reach it any more, however its other requests end, is
            stopped too. That is certain, too.

    Raises:
        InputError: the error rate is not a share below a half.
    """

    def __init__(self, goal: Goal, error_rate: float = ERROR_RATE, beat: float | None = None) -> None:
        if not 0 <= error_rate < 0.5:
            raise InputError("error_rate", error_rate, "a share from 0 to below 0.5", "0 stops what is certain only")
        self._goal, self._limits, self._beat = goal, goal.parsed, beat
        percentiles = sum(limit.share > 0 for limit in self._limits)
        self._rate = error_rate / max(percentiles, 1)
        self.begin(Workload(()))

    def begin(self, workload: Workload) -> None:
        """A trial begins."""
        self._class = {one.request: one.class_name for one in workload.requests}
        self._planned = {
            one.request: one.arrival_s for one in workload.requests if one.class_name not in workload.concurrency
        }
        self._open = len(self._planned) == len(workload.requests)  # every arrival is known
        self._last: dict[str, float] = {}  # last arrival of output on each stream that goes on
        self._waits = sorted(self._planned, key=self._planned.__getitem__, reverse=True)
        self._timed: set[str] = set()  # requests whose TTFT is known, or known to be late
        self._missed: set[str] = set()  # requests that the SLO is lost for
        self._now = 0.0
        arrivals = list(self._planned.values())
        self._span = (min(arrivals), max(arrivals)) if arrivals else (0.0, 0.0)
        self._counts = [
            (limit, Count(limit.value, self._total(limit, workload), limit.share, self._rate)) for limit in self._limits
        ]
        self._of_gaps = [one for one in self._counts if one[0].kind == "gap"]
        self._of_ttft = [one for one in self._counts if one[0].kind == "ttft"]

    def look(self, batches: Sequence[Batch]) -> Stop | None:
        """Take new rows."""
        for table, rows in batches:
            if table == "tokens":
                for row in rows:
                    self._arrival(row)
            elif table == "requests":
                for row in rows:
                    self._request(row)
            elif table == "memory" and rows:
                self._now = max(self._now, rows[-1]["t_s"])
        self._overdue()
        return self._verdict()

    def _total(self, limit: Limit, workload: Workload) -> int:
        mine = [one for one in workload.requests if limit.of in (None, one.class_name)]
        return sum(one.output_tokens - 1 for one in mine) if limit.kind == "gap" else len(mine)

    def _arrival(self, row: dict[str, Any]) -> None:
        name, at = row["request"], row.get("client_s")
        at = row.get("engine_s") if at is None else at
        if at is None or name is None:
            return
        self._now = max(self._now, at)
        before = self._last.get(name)
        self._last[name] = at
        if before is None:
            self._first(name, at)
        else:
            self._gap(name, (at - before) * 1e3)

    def _gap(self, name: str, gap_ms: float) -> None:
        of = self._class.get(name)
        for limit, count in self._of_gaps:
            if limit.of in (None, of):
                count.take(gap_ms)
        slo = self._goal.slo
        if gap_ms > slo.gap_ms and slo.gap_percentile == 100:
            self._missed.add(name)

    def _first(self, name: str, at: float) -> None:
        if name in self._planned:
            self._ttft(name, at - self._planned[name])

    def _request(self, row: dict[str, Any]) -> None:
        name, first, planned = row.get("request"), row.get("first_s"), row.get("planned_s")
        if name is None or row.get("status") is None:  # what was planned, before anything is played
            return
        self._last.pop(name, None)  # it has ended: no gap is open
        if name not in self._planned and first is not None and planned is not None:
            self._ttft(name, first - planned)
        if row["status"] != "ok":
            self._missed.add(name)

    def _ttft(self, name: str, seconds: float) -> None:
        if name in self._timed:
            return
        self._timed.add(name)
        of = self._class.get(name)
        for limit, count in self._of_ttft:
            if limit.of in (None, of):
                count.take(seconds)
        if seconds * 1e3 > self._goal.slo.ttft_ms:
            self._missed.add(name)

    def _overdue(self) -> None:
        """First tokens and gaps that are late already, though nobody knows yet how late."""
        now = self._now - _LATE_S
        longest = max((limit.value for limit, _ in self._of_ttft), default=0.0)
        longest = max(longest, self._goal.slo.ttft_ms / 1e3)
        while self._waits and now - self._planned[self._waits[-1]] > longest:
            name = self._waits.pop()
            self._ttft(name, now - self._planned[name])
        certain = [(limit, count) for limit, count in self._of_gaps if not count.allowed and not count.over]
        if certain:
            for name, at in self._last.items():
                gap_ms = (now - at) * 1e3
                for limit, count in certain:
                    if gap_ms > limit.value and limit.of in (None, self._class.get(name)):
                        count.take(gap_ms)

    def _verdict(self) -> Stop | None:
        for limit, count in self._counts:
            sure = count.certain
            if sure or count.likely:
                how = "certain" if sure else f"error rate {self._rate:g}"
                what = "gaps" if limit.kind == "gap" else "first tokens"
                why = (
                    f"{limit.name} cannot stay within {limit.value:g}: {count.over} of {count.known} {what} so far are "
                    f"above it, {count.allowed} of {count.total} may be ({how})"
                )
                return Stop(limit.name, count.excess, why)
        if self._beat is not None and self._open and self._class:
            begin, end = self._span
            seconds = max(end, self._now) - begin
            most = (len(self._class) - len(self._missed)) / seconds if seconds > 0 else float("inf")
            if most < self._beat:
                why = f"goodput can reach {most:.3g}/s at most, {BEST} has {self._beat:.3g}/s (certain)"
                return Stop(BEST, 0.0, why, reach=most)
        return None
