"""C15: look up the longest cached prefix first, and chunk only what missed."""

from __future__ import annotations

import pandas as pd

from workbench import metrics
from workbench.claims.cache_lookup import cache_lookups
from workbench.claims.verdict import Measured, Outcome, Verdict, ended, on_gpu, origin_of
from workbench.errors import InputError
from workbench.i18n import phrase, phrases


def cached_prefix(
    off: Measured,
    on: Measured,
    *,
    reset: Measured | None = None,
    chunked: Measured | None = None,
    preempted: Measured | None = None,
    preempted_off: Measured | None = None,
) -> Verdict:
    """Judge C15 from runs of one workload with shared prefixes: one that does not read the cache, one that does.

    Holds when the run with the cache computes fewer prompt tokens, each request computes exactly what the cache did
    not have (its prompt less the tokens that had KV before its first step), each takes all whole blocks of a prefix
    that was computed before, and the requests with a hit have a shorter median TTFT than without the cache. Does not
    hold when nothing is saved; in part otherwise. The last two runs are told, not judged: they show what a preemption
    costs with the cache.

    Args:
        off: new requests did not read the cache.
        on: they did; it was empty at the beginning.
        reset: the same as ``on``, after the cache was emptied.
        chunked: the same with a chunk cap or a budget that cuts even what missed.
        preempted: a run in which requests were preempted and read the cache when they came back.
        preempted_off: the same without the cache.

    Raises:
        InputError: a request of ``off`` has tokens from the cache, or none of ``on`` has; see also
            :func:`workbench.claims.cache_lookup.cache_lookups`.
    """
    without, cached = cache_lookups(off), cache_lookups(on)
    if without["cached_tokens"].any():
        raise InputError("off", "a request with tokens from the cache", "the cache off", "knobs(prefix_cache=False)")
    hits = cached[cached["cached_tokens"] > 0]
    if hits.empty:
        raise InputError("on", "no request with tokens from the cache", "shared prefixes", "play shared_prefix")
    more = [run for run in (reset, chunked) if run is not None and run is not on]
    more = more[:1] if reset is chunked else more  # one run may be both
    every = pd.concat([cached, *map(cache_lookups, more)])
    whole, known = every[every["whole"]], every[every["shared_tokens"].notna()]
    exact = whole["computed_tokens"] == whole["prompt_tokens"] - whole["cached_tokens"]
    longest = known["cached_tokens"] >= known["shared_tokens"]
    saved = 1 - cached["computed_tokens"].sum() / without["computed_tokens"].sum()
    before, after = without.loc[without.index.isin(hits.index), "ttft_s"].median(), hits["ttft_s"].median()
    outcome: Outcome = "holds in part"
    if saved <= 0:
        outcome = "does not hold here"
    elif exact.all() and longest.all() and after < before:
        outcome = "holds"
    parts = [
        phrase(
            "With the cache {computed} prompt tokens were computed, without it {without}: {saved:.0%} "
            "less. {exact} of {all} requests computed exactly what the cache did not have",
            computed=_computed(cached),
            without=_computed(without),
            saved=saved,
            exact=int(exact.sum()),
            all=len(exact),
        )
    ]
    if len(known):
        parts.append(
            phrase(
                "{longest} of {all} took every whole block of a prefix that was there",
                longest=int(longest.sum()),
                all=len(known),
            )
        )
    parts.append(
        phrase(
            "median TTFT of the {hits} with a hit goes from {before:,.2f} s to {after:,.2f} s",
            hits=len(hits),
            before=before,
            after=after,
        )
    )
    sentence = (
        phrases("; ", parts) + phrase(".") + _reset(reset) + _chunked(chunked) + _preempted(preempted, preempted_off)
    )
    return Verdict(
        claim="C15",
        text="Look up the longest cached prefix first and chunk only what missed",
        outcome=outcome,
        sentence=sentence,
        origin=origin_of([off, on]),
        article="no numbers given.",
        arithmetic=(
            "vLLM hashes whole blocks, so that of a shared prefix the last, partly filled block is computed again, and "
            "at least one token of each prompt always is."
        ),
        untested=_untested(off, on, chunked, preempted, known),
    )


def _computed(table: pd.DataFrame) -> str:
    return f"{int(table['computed_tokens'].sum()):,}"


def _reset(run: Measured | None) -> str:
    return (
        ""
        if run is None
        else phrase(" After a reset of the cache {computed} were computed.", computed=_computed(cache_lookups(run)))
    )


def _chunked(run: Measured | None) -> str:
    if run is None:
        return ""
    table = cache_lookups(run)
    hit = table["cached_tokens"] > 0
    miss, rest = table.loc[~hit, "prefill_steps"].median(), table.loc[hit, "prefill_steps"].median()
    return phrase(
        " Chunked, a prompt without a hit took {miss:,.0f} steps and one with a hit {rest:,.0f} (medians).",
        miss=miss,
        rest=rest,
    )


def _preempted(run: Measured | None, off: Measured | None) -> str:
    said = []
    for name, one in ((phrase("with the cache"), run), (phrase("without it"), off)):
        table = metrics.preemptions(one.trace) if one is not None else pd.DataFrame()
        if len(table):
            lost, again = int(table["lost_tokens"].sum()), int(table["recomputed_tokens"].sum())
            said.append(phrase("{again:,} of {lost:,} {where}", again=again, lost=lost, where=name))
    if not said:
        return ""
    which = phrases(", ", said)
    return phrase(" Of the tokens that lost their KV in a preemption, {which} were computed again.", which=which)


def _untested(
    off: Measured, on: Measured, chunked: Measured | None, preempted: Measured | None, known: pd.DataFrame
) -> str:
    said = []
    if known.empty:
        said.append(
            phrase("whether it is the longest prefix (no request is known to share one that was computed before)")
        )
    if chunked is None:
        said.append(phrase("the cache together with chunks"))
    if preempted is None or not len(metrics.preemptions(preempted.trace)):
        said.append(phrase("what a preemption costs with the cache"))
    if not on_gpu([off, on]):
        said.append(phrase("a GPU, where blocks are 16 tokens"))
    return ended("; ", said)
