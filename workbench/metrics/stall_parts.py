"""What a gap was made of: time without KV blocks, tokens computed again, steps that left the request out, prompts."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from workbench.metrics.gaps import Floats, Ints
from workbench.metrics.preemptions import Preemptions
from workbench.metrics.step_table import Bools, StepTable

FULL = 0.95  # share of KV blocks in use from which a step that leaves a request out is taken to be short of them

_FEW = 64  # parts up to which plain Python beats numpy

Range = tuple[int, int]  # positions of steps, the last not included


@dataclass(frozen=True, slots=True)
class Prompt:
    """What the prefill of one request took of a gap."""

    request: str
    seconds: float
    tokens: int
    again: int  # of those, computed before: the request had been preempted
    step: int  # number of the step with most of it


@dataclass(slots=True)
class Parts:
    """What a gap was made of; no two parts overlap."""

    away_s: float = 0.0  # preempted, until it computed again
    redo_s: float = 0.0  # from then until its tokens had been computed again
    again: float = 0.0  # those tokens; NaN is unknown
    preempted_at: int | None = None  # position of the step that preempted it
    short_s: float = 0.0  # steps that left it out for want of blocks
    short_at: int | None = None  # position of the first of them
    prompts: list[Prompt] = field(default_factory=list)  # of other requests, the longest first


class GapParts:
    """Divides gaps; built once a trace.

    Args:
        steps: of the trace.
        lost: its preemptions.
    """

    def __init__(self, steps: StepTable, lost: Preemptions) -> None:
        self.steps, self._lost = steps, lost
        count, order = len(steps.end_s), steps.by_request
        self._key = steps.part_of[order] * (count + 1) + steps.part_step[order]
        self._by_step: Ints = steps.part_step[order]
        again = np.empty(len(order))
        again[order] = np.nan_to_num(lost.part_again)
        prompt = np.flatnonzero(steps.part_prefill)
        self._step, self._of, self._tokens = (a[prompt] for a in (steps.part_step, steps.part_of, steps.part_tokens))
        self._again = again[prompt]
        self._first: Ints = np.searchsorted(self._step, np.arange(count + 1))
        in_step = np.bincount(self._step, self._tokens, count)[self._step]
        share = np.divide(self._tokens, in_step, out=np.zeros(len(prompt)), where=in_step > 0)
        self._seconds: Floats = steps.seconds[self._step] * share
        preempting = np.bincount(steps.victim_step, minlength=count) > 0
        self._short: Bools = preempting | ((steps.kv_use >= FULL) & (self._first[1:] == self._first[:-1]))
        self._seen: dict[tuple[Range, ...], list[tuple[int, Prompt]]] = {}
        self._plain: dict[Range, Parts] = {}

    def special(self, code: Ints, low: Ints, high: Ints) -> Bools:
        """Which gaps may hold more than prompts of other requests; for the others :meth:`plain` is all there is.

        Args:
            code: for each gap, where its request is in ``StepTable.names``; -1 is nowhere.
            low: position of the first step that ended in it.
            high: position after the last.
        """
        lost, size, ends = self._lost, len(self.steps.end_s) + 1, self.steps.end_s
        base = code * size
        since, until = (np.searchsorted(ends, edge, side="right") for edge in (lost.from_s, lost.redone_s))
        event = np.searchsorted(lost.of * size + until, base + low)
        own = np.append(lost.of, -2)[event] == code
        found: Bools = own & (np.append(since, 0)[event] <= high)
        held = np.searchsorted(self._key, base + high) - np.searchsorted(self._key, base + low)
        short = np.concatenate(([0], np.cumsum(self._short)))
        found |= (held < high - low) & (short[high] > short[low])
        prompts = np.sort(self._of * size + self._step)
        found |= np.searchsorted(prompts, base + high) > np.searchsorted(prompts, base + low)
        return found & (code >= 0)

    def plain(self, low: int, high: int) -> Parts:
        """Divide a gap of which only the prompts in it are to be told."""
        parts = self._plain.get((low, high))
        if parts is None:
            ranges = ((low, high),) if low < high else ()
            parts = self._plain[low, high] = Parts(prompts=[prompt for _, prompt in self._prompts(ranges)])
        return parts

    def of(self, request: str, begin_s: float, end_s: float, low: int, high: int) -> Parts:
        """Divide a gap of ``request`` from ``begin_s`` to ``end_s`` in which steps ``low`` to ``high`` - 1 ended."""
        parts, code = Parts(), self.steps.where.get(request, -1)
        ranges = self._preempted(parts, code, begin_s, end_s, low, high)
        ranges = self._left_out(parts, code, ranges)
        if ranges not in self._seen:
            self._seen[ranges] = self._prompts(ranges)
        parts.prompts = [prompt for of, prompt in self._seen[ranges] if of != code]
        return parts

    def taker(self, position: int, request: str) -> str | None:
        """The other request whose prompt took most tokens in a step, if any: what blocks were needed for."""
        mine = slice(int(self._first[position]), int(self._first[position + 1]))
        others = [(t, self.steps.names[of]) for t, of in zip(self._tokens[mine], self._of[mine], strict=True)]
        return max(((t, name) for t, name in others if name != request), default=(0, None))[1]

    def _preempted(
        self, parts: Parts, code: int, begin_s: float, end_s: float, low: int, high: int
    ) -> tuple[Range, ...]:
        """Note the preemptions in a gap; the steps of it that are left."""
        lost, ends = self._lost, self.steps.end_s
        first, last = np.searchsorted(lost.of, (code, code + 1))
        event = int(first + np.searchsorted(lost.redone_s[first:last], begin_s, side="right"))
        left, until = [], begin_s
        while event < last and lost.from_s[event] < end_s:
            start, stop = max(float(lost.from_s[event]), until), min(float(lost.redone_s[event]), end_s)
            if stop > start:
                back = min(max(float(lost.computing_s[event]), start), stop)
                parts.away_s, parts.redo_s = parts.away_s + back - start, parts.redo_s + stop - back
                parts.again += float(lost.recomputed[event])
                if parts.preempted_at is None and lost.step[event] >= 0:
                    parts.preempted_at = int(lost.step[event])
                left.append((low, int(np.searchsorted(ends, start, side="right"))))
                low, until = int(np.searchsorted(ends, stop, side="right")), stop
            event += 1
        return tuple((a, b) for a, b in [*left, (low, high)] if a < b)

    def _left_out(self, parts: Parts, code: int, ranges: tuple[Range, ...]) -> tuple[Range, ...]:
        """Note the steps that left the request out for want of blocks; the steps that are left."""
        kept: list[Range] = []
        for low, high in ranges:
            base = code * (len(self.steps.end_s) + 1)
            first, last = np.searchsorted(self._key, (base + low, base + high)) if code >= 0 else (0, 0)
            if code < 0 or last - first == high - low:
                kept.append((low, high))
                continue
            out = self._short[low:high].copy()
            out[self._by_step[first:last] - low] = False
            if not out.any():
                kept.append((low, high))
                continue
            parts.short_s += float(self.steps.seconds[low:high][out].sum())
            if parts.short_at is None:
                parts.short_at = low + int(out.argmax())
            edges = np.flatnonzero(np.diff(np.concatenate(([True], out, [True])).astype(np.int8)))
            kept += [(low + int(a), low + int(b)) for a, b in edges.reshape(-1, 2)]
        return tuple(kept)

    def _prompts(self, ranges: tuple[Range, ...]) -> list[tuple[int, Prompt]]:
        """Prompts in ranges of steps, the longest first, each with its place among the names."""
        at = [i for low, high in ranges for i in range(self._first[low], self._first[high])]
        if len(at) > _FEW:
            return self._many_prompts(np.array(at))
        sums: dict[int, list[float]] = {}  # seconds, tokens, again, seconds of the longest, where that is
        for i in at:
            seconds, tokens, again = float(self._seconds[i]), float(self._tokens[i]), float(self._again[i])
            one = sums.setdefault(int(self._of[i]), [0.0, 0.0, 0.0, -1.0, 0])
            one[:3] = one[0] + seconds, one[1] + tokens, one[2] + again
            if seconds > one[3]:
                one[3:] = seconds, i
        found = [(of, self._prompt(of, one[0], one[1], one[2], int(one[4]))) for of, one in sums.items()]
        return sorted(found, key=lambda one: -one[1].seconds)

    def _many_prompts(self, at: Ints) -> list[tuple[int, Prompt]]:
        """The same for ranges that hold many."""
        of, place = np.unique(self._of[at], return_inverse=True)
        seconds, tokens, again = (np.bincount(place, a[at]) for a in (self._seconds, self._tokens, self._again))
        by_time = at[np.lexsort((-self._seconds[at], place))]
        most = by_time[np.searchsorted(self._of[by_time], of)]
        found = [
            (int(code), self._prompt(int(code), seconds[i], tokens[i], again[i], most[i])) for i, code in enumerate(of)
        ]
        return sorted(found, key=lambda one: -one[1].seconds)

    def _prompt(self, of: int, seconds: float, tokens: float, again: float, most: int) -> Prompt:
        step = int(self.steps.number[self._step[most]])
        return Prompt(self.steps.names[of], float(seconds), int(tokens), int(again), step)
