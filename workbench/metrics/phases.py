"""The history of each request: queued, prefill, decode, preempted, recompute."""

from __future__ import annotations

import numpy as np
import pandas as pd

from workbench.metrics.gaps import Floats, Ints, class_of
from workbench.metrics.preemptions import Preemptions
from workbench.metrics.step_table import StepTable
from workbench.trace import Trace, floats

PHASES = ("queued", "prefill", "decode", "preempted", "recompute")
_QUEUED, _PREFILL, _DECODE, _PREEMPTED, _RECOMPUTE = range(len(PHASES))


def phases(trace: Trace) -> pd.DataFrame:
    """Return one row a phase of a request: requests in the order of the trace, their phases in the order of time.

    Columns: ``request``, ``class``, ``phase`` (one of :data:`PHASES`), ``begin_s``, ``end_s``, ``tokens`` (computed in
    it). ``queued`` runs from the send (from the planned arrival where nobody noted the send) until the first step that
    held the request; ``preempted`` until it computes again; ``recompute`` is what was computed before, its tokens are
    the ``recomputed_tokens`` of :func:`workbench.metrics.preemptions`. A step that computes old and new tokens is
    divided by them. A phase in which the request ended, or still is, ends with the request or with what is recorded.

    Without step records there is nothing to tell: no rows.
    """
    steps = StepTable.of(trace)
    lost = Preemptions.among(steps)
    table = trace.tables["requests"]
    told = table["request"].to_pylist()
    names = list(dict.fromkeys([*told, *steps.names]))
    rank = {name: i for i, name in enumerate(names)}
    place = np.array([rank[name] for name in steps.names], dtype=np.int64)
    count, now_s = len(rank), _latest(trace, steps)
    done, arrived = np.full(count, now_s), np.full(count, np.nan)
    sent, planned = floats(table["sent_s"]), floats(table["planned_s"])
    done_s = floats(table["done_s"])
    own = np.array([rank[name] for name in told], dtype=np.int64)
    done[own] = np.where(np.isnan(done_s), now_s, done_s)

    of, kind, begin, end, tokens = _computed(steps, lost)
    of = place[of]
    first: Floats = np.full(count, np.inf)
    np.minimum.at(first, of, begin)
    arrived[own] = np.where(np.isnan(sent) & np.isfinite(first[own]), planned, sent)
    queued = np.flatnonzero(~np.isnan(arrived)) if len(steps.end_s) else np.empty(0, np.int64)
    victim = place[lost.of]
    of = np.concatenate((of, queued, victim))
    zeros = np.zeros(len(queued) + len(victim))
    kind = np.concatenate((kind, np.full(len(queued), _QUEUED), np.full(len(victim), _PREEMPTED)))
    begin = np.concatenate((begin, arrived[queued], lost.from_s))
    end = np.concatenate((end, np.minimum(first, done)[queued], np.minimum(lost.computing_s, done[victim])))
    end, tokens = np.maximum(begin, end), np.concatenate((tokens, zeros))
    order = np.lexsort((kind == _RECOMPUTE, end, begin, of))
    classes = class_of(trace)
    return pd.DataFrame(
        {
            "request": pd.Series([names[i] for i in of[order]], dtype=object),
            "class": pd.Series([classes.get(names[i]) for i in of[order]], dtype=object),
            "phase": pd.Series([PHASES[i] for i in kind[order]], dtype=object),
            "begin_s": begin[order],
            "end_s": end[order],
            "tokens": tokens[order].astype(np.int64),
        }
    )


def _computed(steps: StepTable, lost: Preemptions) -> tuple[Ints, Ints, Floats, Floats, Floats]:
    """Phases in which something was computed: request, kind, begin, end, tokens."""
    order = steps.by_request
    owner, at, tokens = steps.part_of[order], steps.part_step[order], steps.part_tokens[order]
    again = np.nan_to_num(lost.part_again)
    kind = np.where(steps.part_prefill[order] & ~((again > 0) & steps.had_output), _PREFILL, _DECODE)
    old, new = np.flatnonzero(again > 0), np.flatnonzero((again < tokens) | (again == 0))
    share = np.divide(again, tokens, out=np.zeros(len(tokens)), where=tokens > 0)
    middle = steps.begin_s[at] + steps.seconds[at] * share
    part = np.concatenate((old, new))
    is_old = np.arange(len(part)) < len(old)
    sort = np.lexsort((~is_old, part))
    part, is_old = part[sort], is_old[sort]
    kind = np.where(is_old, _RECOMPUTE, kind[part])
    of, after = owner[part], lost.part_of[part]
    begin = np.where(is_old, steps.begin_s[at[part]], middle[part])
    end = np.where(is_old, middle[part], steps.end_s[at[part]])
    amount = np.where(is_old, again[part], (tokens - again)[part])
    if not len(part):
        return of, kind, begin, end, amount
    cut = np.flatnonzero((of[1:] != of[:-1]) | (kind[1:] != kind[:-1]) | (after[1:] != after[:-1])) + 1
    start = np.concatenate(([0], cut))
    stop = np.concatenate((cut, [len(part)])) - 1
    return of[start], kind[start], begin[start], end[stop], np.add.reduceat(amount, start)


def _latest(trace: Trace, steps: StepTable) -> float:
    """The last moment of which anything is recorded."""
    times = [steps.end_s, *(floats(trace.tables[t][c]) for t, c in (("tokens", "client_s"), ("requests", "done_s")))]
    known = [float(np.nanmax(some)) for some in times if np.isfinite(some).any()]
    return max(known, default=np.nan)
