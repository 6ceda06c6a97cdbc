"""C10: above 95 % of the KV memory the scheduler must preempt; recompute costs prefill again, swap costs PCIe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import pandas as pd

from workbench import metrics
from workbench.claims.journal import Journal
from workbench.claims.verdict import Measured, Outcome, Verdict, on_gpu, origin_of
from workbench.errors import InputError
from workbench.i18n import phrase, phrase_counted, phrases
from workbench.metrics.crossover import link_of
from workbench.metrics.gaps import Floats
from workbench.metrics.mfu import architecture_of
from workbench.metrics.prefill_cost import prefill_cost
from workbench.units import MIB

FULL = 0.95  # the article's threshold
MOST, HALF = 0.9, 0.5  # of the preemptions have to come at that use or above


@dataclass(frozen=True)
class Cost:
    """What preemption cost in one run.

    Attributes:
        table: one row a preemption; see :func:`workbench.metrics.preemptions`. Those under policy qos with less than
            half of the blocks in use are left out: they were for a slot.
        kv_use: for each preemption on record the share of KV blocks in use, 0 to 1: the larger one of the step before
            and of the step in whose planning it happened, after the victim's blocks were freed and given away.
        full: steps that ran with at least 95 % of the blocks in use.
        quiet: of those, the ones after which the next step preempted nobody.
        prefill: prompt tokens that the run computed, for the first time or again.
    """

    table: pd.DataFrame
    kv_use: Floats
    full: int
    quiet: int
    prefill: int

    @classmethod
    def of(cls, run: Measured) -> Self:
        """Count.

        Raises:
            InputError: the run has no step records.
        """
        journal = Journal.of(run)
        steps, table = journal.table, metrics.preemptions(run.trace)
        before = np.concatenate(([np.nan], steps.kv_use[:-1]))
        full = steps.kv_use >= FULL
        preempts = np.isin(np.arange(1, len(full)), steps.victim_step)
        use = np.fmax(steps.kv_use, before)[steps.victim_step]
        qos = np.array([journal.policy[step] == "qos" for step in steps.victim_step], dtype=bool)
        slot = qos & (use < HALF)
        named = zip(steps.number[steps.victim_step[slot]], steps.victim_of[slot], strict=True)
        slots = {(int(number), steps.names[one]) for number, one in named}
        kept = [event not in slots for event in zip(table["step"], table["request"], strict=True)]
        return cls(
            table=table[np.array(kept, dtype=bool)],
            kv_use=use[~slot],
            full=int(full.sum()),
            quiet=int(np.sum(full[:-1] & ~preempts)),
            prefill=int(np.nansum(steps.prefill_tokens)),
        )


def preemption_cost(*runs: Measured) -> Verdict:
    """Judge C10 from runs in which requests were preempted because the KV pool was too small.

    Three things are checked: at least 90 % of the preemptions come with 95 % of the blocks in use or more; a step at
    that use is always followed by one (it *must* preempt); and what was lost is computed again. Holds when all three
    are so; does not hold when nothing is computed again or more than half of the preemptions come earlier; in part
    otherwise. That swap costs PCIe is not judged: vLLM V1 never swaps to preempt. What it would take is an estimate.

    Raises:
        InputError: nobody was preempted, or the KV use of these steps is not on record.
    """
    found = [Cost.of(run) for run in runs]
    events = [one.table for one in found if len(one.table)]
    if not events:
        raise InputError("runs", "no preemption for KV blocks", "at least one", "play thrash with reserve_full off")
    table, use = pd.concat(events, ignore_index=True), np.concatenate([one.kv_use for one in found])
    use = use[~np.isnan(use)]
    if not len(use):
        raise InputError("runs", "preemptions without the KV use of their steps", "step records", "play it again")
    lost, again = int(table["lost_tokens"].sum()), int(table["recomputed_tokens"].sum())
    full, quiet = sum(one.full for one in found), sum(one.quiet for one in found)
    at_full = float(np.mean(use >= FULL))
    outcome: Outcome = "holds in part"
    if at_full < HALF or not again:
        outcome = "does not hold here"
    elif at_full >= MOST and not quiet:
        outcome = "holds"
    return Verdict(
        claim="C10",
        text="When KV memory passes 95 % the scheduler must preempt: recompute frees at once but costs prefill again",
        outcome=outcome,
        sentence=phrase(
            "{preemptions}, {np} of {use} with ≥ {full:.0%} of the KV blocks in use (lowest "
            "{use_min:.0%}). {quiet:,} of {full2:,} steps at ≥ {full:.0%} were followed by none{quiet2}. "
            "{lost:,} tokens lost their KV and {again:,} were computed again, {again2:.0%} of all prefill. "
            "{waits}",
            preemptions=_preemptions(table),
            np=int(np.sum(use >= FULL)),
            use=len(use),
            full=FULL,
            use_min=use.min(),
            quiet=quiet,
            full2=full,
            quiet2=phrase(": a missing block forces it, not a percentage") if quiet else "",
            lost=lost,
            again=again,
            again2=again / sum(one.prefill for one in found),
            waits=_waits(table),
        ),
        origin=origin_of(runs),
        article="preemption above 95 %; recompute frees at once and costs prefill again, swap costs PCIe.",
        arithmetic=_swap(runs, table),
        untested=phrase("swap: vLLM V1 preempts by recompute only.")
        if on_gpu(runs)
        else phrase("swap: vLLM V1 preempts by recompute only, and KV offload needs a GPU."),
    )


def _preemptions(table: pd.DataFrame) -> str:
    """How many, and of which classes."""
    classes = phrases(", ", (f"{name} {count}" for name, count in table["class"].value_counts().items()))
    return phrase_counted("{n:,} preemption ({classes})", "{n:,} preemptions ({classes})", len(table), classes=classes)


def _waits(table: pd.DataFrame) -> str:
    """How long the victims were away, as far as they came back."""
    away, recovered = table["away_s"].dropna(), table["recovered_s"].dropna()
    if away.empty:
        return phrase("No victim came back.")
    back = phrase(
        "A victim waited {away:,.1f} s (at most {away_max:,.1f} s) for its next turn",
        away=away.median(),
        away_max=away.max(),
    )
    if recovered.empty:
        return back + phrase(".")
    return phrase(
        "{back} and was where it had been after {recovered:,.1f} s (at most {recovered_max:,.1f} s).",
        back=back,
        recovered=recovered.median(),
        recovered_max=recovered.max(),
    )


def _swap(runs: Sequence[Measured], table: pd.DataFrame) -> str:
    """What moving the lost KV to the host and back would take, beside what computing it again took."""
    architecture = architecture_of(runs[0].trace)
    if architecture is None:
        return ""
    link, size = link_of(runs[0].trace), architecture.kv_bytes_per_token() * int(table["lost_tokens"].sum())
    said = phrase(
        "swap would move {size:,.1f} MiB out and in, {seconds:,.2f} ms ({source})",
        size=size / MIB,
        seconds=link.seconds(size) * 1000.0,
        source=link.source,
    )
    cost = prefill_cost(runs[0].trace)
    if cost is None:
        return said + phrase(".")
    again = sum(cost.seconds(tokens) for tokens in table["recomputed_tokens"].dropna())
    return phrase(
        "{said}; to compute the tokens again took {again:,.1f} s ({source}).",
        said=said,
        again=again,
        source=cost.source,
    )
