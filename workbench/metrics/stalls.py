"""Every stall of a run (a gap above the SLO), with what caused it.

A cause must account for at least half of the gap. Tried in this order:

* front end or client: the engine had the token in time, the rest of the gap lies behind it;
* preemption: the request lost its KV blocks in the gap, or had its prompt computed again;
* prefill: steps in the gap carried the prompt of one other request;
* several: the prompts of several requests, or they and the front end together;
* unknown: none of these, or no step records.

The time of a step belongs to the prompts in it, in proportion to their tokens.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np
import pandas as pd

from workbench.config import SLO
from workbench.metrics.gaps import Floats, Gaps, Ints, encode
from workbench.trace import Trace, floats

CAUSES = ("prefill", "preemption", "several", "front end or client", "unknown")
_MOST = 0.5
_COLUMNS = ["request", "class", "at_s", "gap_ms", "cause", "detail"]


def stalls(trace: Trace, slo: SLO) -> pd.DataFrame:
    """Return one row a stall in the order of time.

    Columns: ``request``, ``class``, ``at_s`` (when it ended), ``gap_ms``, ``cause`` (one of :data:`CAUSES`), ``detail``
    (one line: which request, how many tokens, how long).
    """
    return find_stalls(trace, slo, Gaps.of(trace))


def find_stalls(trace: Trace, slo: SLO, gaps: Gaps) -> pd.DataFrame:
    """Same as :func:`stalls`, for gaps that are known already."""
    which = np.flatnonzero(gaps.gap_ms > slo.gap_ms)
    if not len(which):
        return pd.DataFrame({name: pd.Series(dtype=float if name in ("at_s", "gap_ms") else str) for name in _COLUMNS})
    which = which[np.argsort(gaps.at_s[which], kind="stable")]
    steps = _Steps.of(trace)
    stamped = np.isfinite(gaps.engine_gap_ms[which])
    begin = np.where(stamped, gaps.engine_begin_s[which], gaps.begin_s[which])
    end = np.where(stamped, gaps.engine_at_s[which], gaps.at_s[which])
    low, high = (np.searchsorted(steps.end_s, edge, side="right") for edge in (begin, end))
    lag_ms = np.where(stamped, gaps.gap_ms[which] - gaps.engine_gap_ms[which], 0.0)
    classes = [*gaps.classes, None]
    rows = []
    for i, gap in enumerate(which.tolist()):
        name, gap_ms = gaps.names[gaps.code[gap]], float(gaps.gap_ms[gap])
        cause, detail = steps.explain(name, gap_ms, float(lag_ms[i]), int(low[i]), int(high[i]))
        rows.append((name, classes[gaps.of_class[gaps.code[gap]]], gaps.at_s[gap], gap_ms, cause, detail))
    return pd.DataFrame(rows, columns=_COLUMNS)


@dataclass(frozen=True)
class _Steps:
    """The steps of a trace, in order, and which prompts they carried."""

    end_s: Floats
    seconds: Floats
    names: list[str]
    prompt_step: Ints  # for each prompt part: position of its step, ascending
    prompt_of: Ints  # whose it is, in names
    prompt_tokens: Floats
    preempted: dict[str, list[int]]  # request: positions of the steps at which it was preempted
    seen: dict[tuple[int, int], list[tuple[float, int, str]]]  # prompts of a range of steps, worked out once

    @classmethod
    def of(cls, trace: Trace) -> _Steps:
        table = trace.tables["steps"]
        end_s = floats(table["end_s"])
        order = np.argsort(end_s, kind="stable")
        order = order[np.isfinite(end_s[order])]
        end_s = end_s[order]
        start, scheduled = floats(table["start_s"])[order], floats(table["scheduled_s"])[order]
        begin = np.where(np.isnan(start), scheduled, start)
        begin = np.fmax(begin, np.concatenate(([-np.inf], end_s[:-1])))  # with two in flight, one runs at a time
        ids = floats(table["step"])[order]
        batch = trace.tables["batch"]
        names, of = encode(batch["request"])
        step = floats(batch["step"])
        by_id = np.argsort(ids, kind="stable")
        at = np.minimum(np.searchsorted(ids[by_id], step), max(len(ids) - 1, 0))
        position = by_id[at] if len(ids) else np.zeros(len(step), np.int64)
        is_prompt = batch["prefill"].fill_null(False).to_numpy() & (of >= 0)
        is_prompt &= (ids[position] == step) if len(ids) else False
        part = np.flatnonzero(is_prompt)
        part = part[np.argsort(position[part], kind="stable")]
        preempted: dict[str, list[int]] = {}
        lists = table["preempted"]
        if lists.null_count < len(lists):
            for place, victims in enumerate(lists.take(order).to_pylist()):
                for victim in victims or ():
                    preempted.setdefault(victim, []).append(place)
        tokens = np.nan_to_num(floats(batch["tokens"]))[part]
        return cls(end_s, np.fmax(end_s - begin, 0), names, position[part], of[part], tokens, preempted, {})

    def explain(self, request: str, gap_ms: float, lag_ms: float, low: int, high: int) -> tuple[str, str]:
        """Cause and detail of a gap of ``request`` in which the steps ``low`` to ``high`` - 1 ended."""
        if lag_ms >= _MOST * gap_ms:
            return "front end or client", f"{lag_ms:,.0f} ms after the engine had the token"
        prompts = self._prompts(low, high)
        again = sum(tokens for _, tokens, name in prompts if name == request)
        places = self.preempted.get(request, [])
        at = bisect_left(places, low)
        if again or (at < len(places) and places[at] < high):
            return "preemption", f"{again:,} tokens computed again" if again else "lost its KV blocks"
        if prompts and prompts[0][0] * 1e3 >= _MOST * gap_ms:
            return "prefill", f"prefill of {prompts[0][2]}, {prompts[0][1]:,} tokens"
        if prompts and sum(seconds for seconds, _, _ in prompts) * 1e3 + max(lag_ms, 0.0) >= _MOST * gap_ms:
            told = ", ".join(f"{name} ({tokens:,})" for _, tokens, name in prompts[:3])
            more = f" and {len(prompts) - 3} more" if len(prompts) > 3 else ""
            late = f", {lag_ms:,.0f} ms behind the engine" if lag_ms > 0.1 * gap_ms else ""
            return "several", f"prefill of {told}{more}{late}"
        if not len(self.end_s):
            return "unknown", "no step records"
        if low == high:
            return "unknown", "no step ended in the gap"
        longest = self.seconds[low:high].max() * 1e3
        return "unknown", f"{high - low:,} steps in the gap, the longest {longest:,.0f} ms"

    def _prompts(self, low: int, high: int) -> list[tuple[float, int, str]]:
        """Prompts in a range of steps as (seconds, tokens, request), the longest first."""
        if (low, high) not in self.seen:
            first, last = np.searchsorted(self.prompt_step, (low, high))
            step, of, tokens = (c[first:last] for c in (self.prompt_step, self.prompt_of, self.prompt_tokens))
            if not len(step):
                return self.seen.setdefault((low, high), [])
            in_step = np.bincount(step - low, tokens)[step - low]
            share = np.divide(tokens, in_step, out=np.zeros(len(tokens)), where=in_step > 0)
            seconds = np.bincount(of, self.seconds[step] * share)
            total = np.bincount(of, tokens)
            found = [(float(seconds[i]), int(total[i]), self.names[i]) for i in np.unique(of)]
            self.seen[low, high] = sorted(found, key=lambda prompt: -prompt[0])
        return self.seen[low, high]
