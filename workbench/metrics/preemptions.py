"""Who lost its KV blocks, what of it was computed again, and how long it took to get back."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from workbench.metrics.gaps import Floats, Ints, class_of
from workbench.metrics.step_table import StepTable
from workbench.trace import Trace

_ROOM = 1 << 32  # more tokens than a request has: keeps groups apart in one sorted array


def preemptions(trace: Trace) -> pd.DataFrame:
    """Return one row a preemption, in the order of time.

    Columns: ``request``, ``class``, ``at_s`` (when the scheduler took its blocks), ``step`` (the step that was being
    planned), ``lost_tokens`` (that had KV, tokens in flight included), ``recomputed_tokens`` (of those it had ever had,
    how many were computed again until it was next preempted; what came back from the prefix cache is not among them),
    ``away_s`` (until it was scheduled again), ``recovered_s`` (until it had ``lost_tokens`` again).

    A preemption whose own record was lost, but after which the request began again, is there without time and step.
    What did not happen, because the request was aborted or the run goes on, is NaN or NA.
    """
    steps = StepTable.of(trace)
    found = Preemptions.among(steps)
    classes = class_of(trace)
    names = [steps.names[i] for i in found.of]
    number = np.where(found.step < 0, np.nan, np.append(steps.number, 0)[found.step])
    frame = pd.DataFrame(
        {
            "request": pd.Series(names, dtype=object),
            "class": pd.Series([classes.get(name) for name in names], dtype=object),
            "at_s": found.at_s,
            "step": pd.array(number, dtype="Int64"),
            "lost_tokens": pd.array(found.lost, dtype="Int64"),
            "recomputed_tokens": pd.array(found.recomputed, dtype="Int64"),
            "away_s": np.where(found.back, found.resumed_s - found.at_s, np.nan),
            "recovered_s": found.recovered_s - found.at_s,
        }
    )
    return frame.iloc[np.argsort(found.from_s, kind="stable")].reset_index(drop=True)


@dataclass(frozen=True)
class Preemptions:
    """The preemptions of a trace as arrays, in the order of requests (places in ``StepTable.names``), then of time.

    Attributes:
        of: who was preempted.
        step: position of the step in whose planning it happened; -1 where that record was lost.
        at_s: when the scheduler took its blocks; NaN where that record was lost.
        from_s: since when it computed nothing: ``at_s``, or the end of a step that was in flight then.
        back: whether it was scheduled again.
        resumed_s: when it was scheduled again; infinite if never.
        computing_s: when the first step after it began to compute; infinite if there was none.
        redone_s: end of the last step that computed its tokens again; ``computing_s`` if there was none.
        recovered_s: when it had its lost tokens again; NaN if never.
        lost: tokens that had KV; NaN is unknown.
        recomputed: tokens computed again before the next preemption; NaN is unknown.
        part_of: for each part in the order of ``StepTable.by_request``, the preemption that it comes after; -1 is none.
        part_again: how many of that part's tokens were computed before; NaN is unknown.
    """

    of: Ints
    step: Ints
    at_s: Floats
    from_s: Floats
    back: np.ndarray
    resumed_s: Floats
    computing_s: Floats
    redone_s: Floats
    recovered_s: Floats
    lost: Floats
    recomputed: Floats
    part_of: Ints
    part_again: Floats

    @classmethod
    def among(cls, steps: StepTable) -> Preemptions:
        """Compute them; linear in parts and preemptions, but for sorting."""
        order = steps.by_request
        owner, at = steps.part_of[order], steps.part_step[order]
        context, tokens = steps.part_context[order], steps.part_tokens[order]
        reach = context + tokens
        key = owner * (len(steps.end_s) + 1) + at

        of, step, after = _events(steps, owner, key)
        before = after - 1
        has_before = (before >= 0) & (np.append(owner, -1)[before] == of)
        back = np.append(owner, -1)[after] == of
        lost = np.where(has_before, np.append(reach, np.nan)[before], np.nan)
        again_at_once = (of[1:] == of[:-1]) & (after[1:] == after[:-1])  # what it did in between is not known
        lost[1:][again_at_once] = np.nan

        part_of = np.searchsorted(after, np.arange(len(owner)), side="right") - 1
        part_of[np.append(of, -2)[part_of] != owner] = -1
        later = part_of >= 0
        ever = np.append(_highest(of, lost), np.nan)[part_of]  # tokens that it has ever had, before each part
        part_again = np.where(later, np.clip(np.fmin(reach, ever) - context, 0, tokens), 0.0)
        part_again[later & np.isnan(ever)] = np.nan
        blind = later & np.isnan(context)  # the record has no contexts: prefill is all there is to go by
        part_again[blind] = np.where(steps.part_prefill[order], tokens, 0.0)[blind]

        at_s = np.where(step >= 0, np.append(steps.scheduled_s, np.nan)[step], np.nan)
        last_s = np.where(has_before, np.append(steps.end_s[at], np.nan)[before], -np.inf)
        none = np.append(steps.begin_s[at], np.inf)
        computing_s = np.where(back, none[after], np.inf)
        resumed_s = np.where(back, np.append(steps.scheduled_s[at], np.inf)[after], np.inf)
        redone = np.full(len(of), -np.inf)
        some = later & (part_again > 0)
        np.maximum.at(redone, part_of[some], steps.end_s[at[some]])
        return cls(
            of=of,
            step=step,
            at_s=at_s,
            from_s=np.fmax(at_s, last_s),
            back=back,
            resumed_s=np.fmax(resumed_s, np.nan_to_num(at_s, nan=-np.inf)),
            computing_s=computing_s,
            redone_s=np.fmax(redone, computing_s),
            recovered_s=_recovered(of, lost, part_of, reach, context, steps.begin_s[at], steps.end_s[at]),
            lost=lost,
            recomputed=np.bincount(part_of[later], part_again[later], minlength=len(of)).astype(np.float64),
            part_of=part_of,
            part_again=part_again,
        )


def _events(steps: StepTable, owner: Ints, key: Ints) -> tuple[Ints, Ints, Ints]:
    """Who was preempted, in planning which step (-1: not recorded), and the first part from that step on."""
    order = steps.by_request
    context, prefill = steps.part_context[order], steps.part_prefill[order]
    after = np.searchsorted(key, steps.victim_of * (len(steps.end_s) + 1) + steps.victim_step)
    # A request whose context is no longer than before its last part has lost that part: it was preempted. Tokens
    # that speculation made up and the model refused leave at least one behind, so they do not look like it.
    same = owner[1:] == owner[:-1]
    restarted = same & (context[1:] <= context[:-1])
    restarted |= same & np.isnan(context[1:]) & prefill[1:] & ~prefill[:-1] & steps.had_output[1:]
    told = np.zeros(len(owner) + 1, bool)
    told[after] = True
    untold = np.flatnonzero(restarted & ~told[1:-1]) + 1
    of = np.concatenate((steps.victim_of, owner[untold]))
    step = np.concatenate((steps.victim_step, np.full(len(untold), -1)))
    after = np.concatenate((after, untold))
    by_request = np.lexsort((step, after, of))
    return of[by_request], step[by_request], after[by_request]


def _highest(of: Ints, values: Floats) -> Floats:
    """Running maximum of values within each request; NaN until one is known."""
    base = of * _ROOM
    top = np.maximum.accumulate(base + np.where(np.isnan(values), -1, values).astype(np.int64)) if len(of) else of
    return np.where(top < base, np.nan, top - base)


def _recovered(
    of: Ints, lost: Floats, part_of: Ints, reach: Floats, context: Floats, begin_s: Floats, end_s: Floats
) -> Floats:
    """When each request had its lost tokens again: in the parts after this preemption, or after one of the next."""
    found: Floats = np.full(len(of), np.nan)
    part = np.flatnonzero((part_of >= 0) & ~np.isnan(reach))
    if not len(part):
        return found
    rising = np.maximum.accumulate(part_of[part] * _ROOM + reach[part].astype(np.int64))
    waiting = np.flatnonzero(~np.isnan(lost))
    behind = waiting.copy()  # the preemption whose parts are looked at
    while len(waiting):
        place = np.searchsorted(rising, behind * _ROOM + lost[waiting].astype(np.int64))
        at = part[np.minimum(place, len(part) - 1)]
        hit = (place < len(part)) & (part_of[at] == behind)
        had = context[at] >= lost[waiting]  # from the prefix cache, as soon as it was scheduled
        found[waiting[hit]] = np.where(had, begin_s[at], end_s[at])[hit]
        waiting, behind = waiting[~hit], behind[~hit] + 1
        own = np.append(of, -1)[behind] == of[waiting]
        waiting, behind = waiting[own], behind[own]
    return found
