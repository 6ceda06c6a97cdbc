"""C13: the order inside a step: decodes first, then preempt if blocks run out, then fill the rest with prefill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from workbench.claims.journal import Journal
from workbench.claims.verdict import Measured, Outcome, Verdict, ended, on_gpu, origin_of
from workbench.errors import InputError
from workbench.i18n import phrase, phrase_counted, phrases
from workbench.metrics.gaps import Ints

# Policies that fill a step up to the budget or the chunk. The others leave room on purpose: qos keeps lower classes out
# while a VIP prefills, target_gap stops at its target, decode_first and monolithic hold prompts back.
_FILLS = ("chunked", "priority")
FULL = 0.95  # of the steps that cut a prompt: a step may end short of the budget where KV blocks ran out
OFTEN = 0.05  # decodes are left out of more steps than this: then they are not first


@dataclass(frozen=True)
class Order:
    """What the steps of one run say.

    Attributes:
        policies: that were in force.
        steps: all of them.
        mixed: steps that computed prefill while decodes ran.
        left_out: of those, steps in which a running decode had no token.
        over: steps with more tokens than the budget.
        victims: requests that were preempted.
        preempting: steps in whose planning that happened.
        served: victims that had a token in that very step.
        cut: steps that left a prompt unfinished, under a policy that fills.
        full: of those, steps that were full to the budget, or in which each unfinished prompt had a whole chunk.
    """

    policies: tuple[str, ...]
    steps: int
    mixed: int
    left_out: int
    over: int
    victims: int
    preempting: int
    served: int
    cut: int
    full: int

    @classmethod
    def of(cls, run: Measured) -> Self:
        """Count.

        Raises:
            InputError: the run has no step records, or not the knobs that its steps ran under.
        """
        journal = Journal.of(run)
        table = journal.table
        policies, budgets = journal.policy, journal.knob("budget")
        if None in policies or np.isnan(budgets).any():
            raise InputError("run", "a step under knobs that are not on record", "the knobs in force", "record it anew")
        total = np.nan_to_num(table.prefill_tokens) + np.nan_to_num(table.decode_tokens)
        waits = _left_out(journal)
        has_prefill = np.nan_to_num(table.prefill_tokens) > 0
        served = [
            bool((journal.at[one] == step).any())
            for step, one in zip(table.victim_step.tolist(), table.victim_of.tolist(), strict=True)
        ]
        fills = np.array([policy in _FILLS for policy in policies])
        cut, full = _filled(journal, total, budgets)
        return cls(
            policies=tuple(sorted({str(policy) for policy in policies})),
            steps=len(total),
            mixed=int(np.sum(has_prefill & ((table.decode_tokens > 0) | waits))),
            left_out=int(np.sum(has_prefill & waits)),
            over=int(np.sum(total > budgets)),
            victims=len(served),
            preempting=len(np.unique(table.victim_step)),
            served=sum(served),
            cut=int(np.sum(cut & fills)),
            full=int(np.sum(cut & fills & full)),
        )


def step_order(*runs: Measured) -> Verdict:
    """Judge C13 from every step of the runs.

    Three things are checked. In each step that computes prefill, every request that is decoding has its token. Who is
    preempted has none in that step. No step exceeds the budget, and under a policy that fills (chunked, priority) at
    least 95 % of the steps that leave a prompt unfinished are full to the budget, or give it a whole chunk. Holds when
    all of that is so; does not hold when a decode is left out of more than 5 % of the steps; in part otherwise.

    Raises:
        InputError: no run is given, or no step computed prefill while a decode ran; see also :meth:`Order.of`.
    """
    if not runs:
        raise InputError("runs", "none", "at least one run", "play one")
    found = [Order.of(run) for run in runs]
    mixed, left_out = sum(one.mixed for one in found), sum(one.left_out for one in found)
    if not mixed:
        raise InputError("runs", "no step with prefill beside a decode", "prefill while chats stream", "play a mix")
    over, served = sum(one.over for one in found), sum(one.served for one in found)
    victims, preempting = sum(one.victims for one in found), sum(one.preempting for one in found)
    cut, full = sum(one.cut for one in found), sum(one.full for one in found)
    outcome: Outcome = "holds in part"
    if left_out > OFTEN * mixed:
        outcome = "does not hold here"
    elif not left_out and not over and not served and full >= FULL * cut:
        outcome = "holds"
    exceptions = [
        phrase("{left_out} under {policies}", left_out=one.left_out, policies=phrases(" and ", one.policies))
        for one in found
        if one.left_out
    ]
    where = phrase(" (left out in {runs})", runs=phrases(", ", exceptions)) if exceptions else ""
    preempted = (
        phrase_counted(
            "{preempting} preempted {n} request, {served} with a token in that step",
            "{preempting} preempted {n} requests, {served} with a token in that step",
            victims,
            preempting=preempting,
            served=served or phrase("none"),
        )
        if victims
        else phrase("none had to preempt")
    )
    untested = [] if victims else [phrase("where preemption comes in the order: no block or slot ran out")]
    filled = phrase(
        "{full} of {cut} steps that left a prompt unfinished were full to the budget or gave it a whole chunk",
        full=full,
        cut=cut,
    )
    if not cut:
        filled = phrase("no step left a prompt unfinished under a policy that fills the step")
        untested.append(phrase("the filling of a step"))
    if not on_gpu(runs):
        untested.append(phrase("two steps in flight, as vLLM schedules on a GPU"))
    return Verdict(
        claim="C13",
        text="Order inside a step: decodes first (1 token each), then preempt if blocks run out, then prefill chunks",
        outcome=outcome,
        sentence=phrase(
            "Of {steps:,} steps {mixed:,} computed prefill while decodes ran: in {kept:,} of them each "
            "decode had its token{where}; {preempted}; {over} exceeded the budget; {filled}.",
            steps=sum(one.steps for one in found),
            mixed=mixed,
            kept=mixed - left_out,
            where=where,
            preempted=preempted,
            over=over if over else phrase("none"),
            filled=filled,
        ),
        origin=origin_of(runs),
        article="decodes first, 1 token each; then preempt if blocks run out; then fill with prefill chunks.",
        untested=ended("; ", untested),
    )


def _left_out(journal: Journal) -> np.ndarray:
    """For each step whether a request that was decoding, and was not preempted, had no token in it.

    A request decodes from the first token it got until it ends or is preempted; then it must be in every step.
    """
    waits = np.zeros(len(journal.table.number), dtype=bool)
    for at, emitted, lost in zip(journal.at, journal.emitted, journal.lost, strict=True):
        for place in np.flatnonzero((np.diff(at) > 1) & (emitted[:-1] > 0)):
            begin, end = int(at[place]) + 1, int(at[place + 1])
            end = min([step for step in lost if begin <= step <= end], default=end)
            waits[begin:end] = True
    return waits


def _filled(journal: Journal, total: np.ndarray, budgets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each step whether it left a prompt unfinished, and whether it then gave what it could."""
    table = journal.table
    prompts = journal.of_request("prompt_tokens")
    unfinished: Ints = np.flatnonzero(
        table.part_prefill & (table.part_context + table.part_tokens < prompts[table.part_of])
    )
    cut = np.zeros(len(total), dtype=bool)
    cut[table.part_step[unfinished]] = True
    chunks = np.nan_to_num(journal.knob("chunk"))
    whole = cut.copy()  # each unfinished prompt had a whole chunk
    for part in unfinished:
        step = table.part_step[part]
        whole[step] &= (chunks[step] > 0) and table.part_tokens[part] >= chunks[step]
    return cut, whole | (total >= budgets)
