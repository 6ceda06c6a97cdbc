"""Every stall of a run (a gap above the SLO), with what caused it.

A gap is joined to the steps that ended in it. What was measured of it is divided into parts that do not overlap, and
a cause must account for at least half of the gap. Tried in this order:

* client: the engine had the token in time, and the client's event loop ran late while the token waited;
* front end: the engine had the token in time, and the client was not late;
* preemption: the request lost its KV blocks, was away, and had tokens computed again;
* kv wait: it was not in steps in which blocks were short, or was preempted and came back without computing anything;
* prefill: steps in the gap carried the prompt of one other request;
* several: all of these together;
* unknown: none of these, or no step records.

The time of a step belongs to the prompts in it, in proportion to their tokens.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from workbench.config import SLO
from workbench.i18n import phrase, phrase_counted, phrases
from workbench.metrics.gaps import Floats, Gaps
from workbench.metrics.preemptions import Preemptions
from workbench.metrics.stall_parts import GapParts, Parts
from workbench.metrics.step_table import StepTable
from workbench.trace import Trace, floats

CAUSES = ("prefill", "preemption", "kv wait", "several", "front end", "client", "unknown")
_MOST = 0.5
Blame = tuple[str, int | None, str | None, str]  # cause, step, request, detail
_COLUMNS = ["request", "class", "at_s", "gap_ms", "cause", "step", "because", "detail"]


def stalls(trace: Trace, slo: SLO) -> pd.DataFrame:
    """Return one row a stall in the order of time.

    Columns: ``request``, ``class``, ``at_s`` (when it ended), ``gap_ms``, ``cause`` (one of :data:`CAUSES`), ``step``
    (the engine's number of the step to blame: the one with most of the prompt, the one that preempted, the longest
    where the cause is not known; NA where no step is to blame), ``because`` (the request to blame: the prompt; with a
    preemption the largest prompt that took the blocks; or None), ``detail`` (one line: which request, how many tokens,
    how long).
    """
    gaps, steps = Gaps.of(trace), StepTable.of(trace)
    return find_stalls(trace, slo, gaps, steps, Preemptions.among(steps))


def explained(frame: pd.DataFrame) -> float | None:
    """Share of stalls, 0..1, whose cause is known; None where there are no stalls."""
    return float((frame["cause"] != "unknown").mean()) if len(frame) else None


def find_stalls(trace: Trace, slo: SLO, gaps: Gaps, steps: StepTable, lost: Preemptions) -> pd.DataFrame:
    """Same as :func:`stalls`, for what is known already."""
    which = np.flatnonzero(gaps.gap_ms > slo.gap_ms)
    which = which[np.argsort(gaps.at_s[which], kind="stable")]
    stamped = np.isfinite(gaps.engine_gap_ms[which])
    begin = np.where(stamped, gaps.engine_begin_s[which], gaps.begin_s[which])
    end = np.where(stamped, gaps.engine_at_s[which], gaps.at_s[which])
    low, high = (np.searchsorted(steps.end_s, edge, side="right") for edge in (begin, end))
    lag_ms = np.where(stamped, gaps.gap_ms[which] - gaps.engine_gap_ms[which], 0.0)
    late_ms = _late_ms(trace, gaps.engine_at_s[which], gaps.at_s[which])
    divided, classes = GapParts(steps, lost), [*gaps.classes, None]
    stream = np.array([steps.where.get(name, -1) for name in gaps.names], dtype=np.int64)
    special = divided.special(stream[gaps.code[which]], low, high)
    rows = []
    for i, gap in enumerate(which.tolist()):
        name, gap_ms, lag = gaps.names[gaps.code[gap]], float(gaps.gap_ms[gap]), float(lag_ms[i])
        blame = _behind(gap_ms, lag, float(late_ms[i]))
        if blame is None:
            span = (int(low[i]), int(high[i]))
            parts = divided.of(name, float(begin[i]), float(end[i]), *span) if special[i] else divided.plain(*span)
            blame = _in_engine(parts, name, gap_ms, lag, divided) or _unknown(steps, *span)
        rows.append((name, classes[gaps.of_class[gaps.code[gap]]], gaps.at_s[gap], gap_ms, *blame))
    # As objects: a column of text would forget what a phrase was made of.
    frame = pd.DataFrame(rows, columns=_COLUMNS, dtype=object)
    kinds = {"at_s": float, "gap_ms": float, "step": "Int64"}
    return frame.astype({name: kinds.get(name, object) for name in _COLUMNS})


def _behind(gap_ms: float, lag_ms: float, late_ms: float) -> Blame | None:
    """Who held a token that the engine had in time."""
    if lag_ms < _MOST * gap_ms:
        return None
    held = phrase("{lag:,.0f} ms after the engine had the token", lag=lag_ms)
    if np.isnan(late_ms):
        said = phrase("{held}: front end or client, whose lateness was not measured", held=held)
        return "unknown", None, None, said
    if late_ms >= _MOST * lag_ms:
        said = phrase("{held}, the client's loop was late for {late:,.0f} ms of it", held=held, late=late_ms)
        return "client", None, None, said
    return "front end", None, None, held


def _in_engine(parts: Parts, request: str, gap_ms: float, lag_ms: float, divided: GapParts) -> Blame | None:
    """What in the engine accounts for the gap, alone or together with what lies behind it."""
    most_s, number = _MOST * gap_ms / 1e3, divided.steps.number
    own_s, prompts = parts.away_s + parts.redo_s, parts.prompts
    redone = parts.again != 0 and own_s > 0  # an unknown number is some
    blamed = parts.preempted_at if parts.short_at is None or own_s >= most_s else parts.short_at
    step = None if blamed is None else int(number[blamed])
    taker = None if blamed is None else divided.taker(blamed, request)
    if redone and own_s >= most_s:
        return "preemption", step, taker, _preempted(parts)
    wait_s = parts.short_s + (0.0 if redone else own_s)
    if wait_s >= most_s:
        how = phrase(", preempted, nothing computed again") if own_s else ""
        return "kv wait", step, taker, phrase("{wait:,.0f} ms without KV blocks", wait=wait_s * 1e3) + how
    if prompts and prompts[0].seconds >= most_s:
        one = prompts[0]
        said = phrase("prefill of {request}, {tokens:,} tokens", request=one.request, tokens=one.tokens)
        if one.again:
            said += phrase(", {again:,} of them again after its preemption", again=one.again)
        return "prefill", one.step, one.request, said
    in_engine_s = own_s + parts.short_s + sum(prompt.seconds for prompt in prompts)
    if in_engine_s > 0 and in_engine_s + max(lag_ms, 0.0) / 1e3 >= most_s:
        told: list[str] = []
        if prompts:
            named = phrases(", ", (f"{p.request} ({p.tokens:,})" for p in prompts[:3]))
            more = phrase(" and {n} more", n=len(prompts) - 3) if len(prompts) > 3 else ""
            told.append(phrase("prefill of {requests}", requests=named + more))
            step, taker = prompts[0].step, prompts[0].request
        if redone:
            told.append(_preempted(parts))
        if wait_s > 0:
            told.append(phrase("{wait:,.0f} ms without KV blocks", wait=wait_s * 1e3))
        if lag_ms > 0.1 * gap_ms:
            told.append(phrase("{lag:,.0f} ms behind the engine", lag=lag_ms))
        return "several", step, taker, phrases(", ", told)
    return None


def _preempted(parts: Parts) -> str:
    tokens = phrase("its") if np.isnan(parts.again) else f"{parts.again:,.0f}"
    away = parts.away_s * 1e3
    return phrase("{tokens} tokens computed again, after {away:,.0f} ms without KV blocks", tokens=tokens, away=away)


def _unknown(steps: StepTable, low: int, high: int) -> Blame:
    """What can be said of a gap that nothing accounts for."""
    if not len(steps.end_s):
        return "unknown", None, None, phrase("no step records")
    if low == high:
        return "unknown", None, None, phrase("no step ended in the gap")
    longest = low + int(steps.seconds[low:high].argmax())
    gone = int(steps.number[high - 1] - steps.number[max(low - 1, 0)]) - (high - 1 - max(low - 1, 0))
    most = steps.seconds[longest] * 1e3
    there = phrase_counted("{n:,} step", "{n:,} steps", high - low)
    told = phrase("{steps} in the gap, the longest {most:,.0f} ms", steps=there, most=most)
    if gone > 0:
        told += phrase(", {gone:,} records were lost", gone=gone)
    return "unknown", int(steps.number[longest]), None, told


def _late_ms(trace: Trace, begin_s: Floats, end_s: Floats) -> Floats:
    """How long the client's loop ran late between two moments; NaN where nobody measured or a moment is not known."""
    table = trace.tables["client"]
    at, late = floats(table["t_s"]), floats(table["late_s"])
    sound = np.flatnonzero(np.isfinite(at) & np.isfinite(late))
    order = sound[np.argsort(at[sound], kind="stable")]
    at, late = at[order], late[order]
    if not len(at):
        return np.full(len(begin_s), np.nan)
    so_far, at, late = np.concatenate(([0.0], np.cumsum(late))), np.append(at, np.inf), np.append(late, 0.0)

    def until(moment: Floats) -> Floats:
        """Seconds of lateness before a moment."""
        place = np.minimum(np.searchsorted(at, moment), len(late) - 1)
        part = np.where(late[place] > 0, moment - (at[place] - late[place]), 0.0)
        found: Floats = so_far[place] + np.clip(part, 0.0, late[place])
        return found

    return np.where(np.isfinite(begin_s), (until(end_s) - until(begin_s)) * 1e3, np.nan)
