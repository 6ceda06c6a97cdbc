"""C4 and C5: what chunking does to the activation memory of a step."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from workbench.claims.long_prompt import LongPrompt
from workbench.claims.verdict import Measured, Outcome, Verdict, ended, on_gpu, origin_of
from workbench.errors import InputError
from workbench.i18n import phrase
from workbench.metrics import memory_fit, pooled
from workbench.trace import Trace
from workbench.units import MIB

CLAIMED = 0.80  # the article's fall
PART = CLAIMED / 2  # at least half of it: something falls, but not what was promised
SQUARE = 2.0
# A chunk late in the prompt may need this much more than an early one and still be said to go with the chunk alone:
# were it to go with the prompt, the last of 32 chunks would need 32 times what the first does.
LEVEL = 1.25
# An interval as wide as this can have both 1 and 2 in it, and then tells nothing of the two apart.
WIDE = 1.0
# So near a power, the law is that power: an interval can be narrower than the logits and buffers beside the chunk, and
# one of 1.001 to 1.006 is a straight line for whoever sizes memory.
NEAR = 0.05
_ABOVE = 1.5  # see memory_exponent
# One step of hundreds may touch memory for the first time (a lazily made buffer, a growing allocator): such an outlier
# is not what a step without prefill needs, so the floor is this percentile of them and not their largest.
_FLOOR_PERCENTILE = 99
_TOKENS, _CHUNK = 32_768, 1_024


def peak_drop(whole: Measured, chunked: Measured) -> Verdict:
    """Judge C4 from two runs of the same prompt, one of them in one step.

    The largest activation peak of the steps that prefilled it is compared. Holds when it falls by 80 % or more, in
    part from 40 %.

    Raises:
        InputError: the first took several steps or the second one only, or no peak was measured.
    """
    _expect_measured(whole, chunked)
    one, many = LongPrompt.of(whole), LongPrompt.of(chunked)
    if len(one.chunks) > 1 or len(many.chunks) == 1 or one.tokens != many.tokens:
        got = f"{one.tokens:,} tokens in {len(one.chunks)} steps and {many.tokens:,} in {len(many.chunks)}"
        raise InputError("runs", got, "the same prompt in one step, then in several", "play both")
    before, after = _peaks(whole)["mib"].max(), _peaks(chunked)["mib"].max()
    fall, chunk = 1 - after / before, max(many.chunks)
    outcome: Outcome = "holds" if fall >= CLAIMED else "holds in part" if fall >= PART else "does not hold here"
    share = chunk / one.tokens
    split = (whole.trace.meta.get("engine") or {}).get("memory_split") or {}
    rest = ""
    if split.get("weights_bytes") and split.get("kv_bytes"):
        rest = phrase(
            " Weights ({weights_bytes:,.0f} MiB) and KV pool ({kv_bytes:,.0f} MiB) stay as they are.",
            weights_bytes=split["weights_bytes"] / MIB,
            kv_bytes=split["kv_bytes"] / MIB,
        )
    untested = (
        []
        if (one.tokens, chunk) == (_TOKENS, _CHUNK)
        else [phrase("{tokens:,} tokens against chunks of {chunk:,}", tokens=_TOKENS, chunk=_CHUNK)]
    )
    if not on_gpu([whole, chunked]):
        untested.append(phrase("a GPU and a model of the article's size"))
    return Verdict(
        claim="C4",
        text="The activation memory peak falls by 80 % with 1K chunks against one 32K prefill",
        outcome=outcome,
        sentence=phrase(
            "{tokens:,} tokens in one step needed {before:,.1f} MiB of activation, in steps of up to "
            "{chunk:,} {after:,.1f} MiB: {fall:.1%} less.{rest}",
            tokens=one.tokens,
            before=before,
            chunk=chunk,
            after=after,
            fall=fall,
            rest=rest,
        ),
        origin=origin_of([whole, chunked]),
        article="80 % less.",
        arithmetic=phrase(
            "memory that goes with the tokens of a step would fall by {share:.1%}, with their square by "
            "{square:.2%}; 80 % is neither, it needs a part that does not shrink.",
            share=1 - share,
            square=1 - share**2,
        ),
        untested=ended(", and ", untested),
    )


def memory_exponent(chunked: Measured, *others: Measured) -> Verdict:
    """Judge C5: with which power of the chunk the memory goes, and whether the prompt's length plays a part.

    Two things are measured: the exponent through the steps of all runs with its 95 % interval, and whether equal
    chunks of one prompt need the same memory late in the prompt as early. Holds when the interval has 2 in it, or
    misses it by at most 0.05, and equal chunks need the same; in part when only one of the two is so; otherwise it does
    not hold here.

    Steps that need less than 1.5 times what a step without any prefill needs (the 99th percentile of those) are left
    out of the fit: their peak is that of the streams' logits, not of the chunk.

    Args:
        chunked: a run with a long prompt in many equal chunks.
        others: more runs on the same engine, with other step sizes.

    Raises:
        InputError: there are too few equal chunks or sizes, the interval is 1 or more wide, or no peak was measured.
    """
    runs = (chunked, *others)
    _expect_measured(*runs)
    fit = memory_fit(_of_prefill(pooled(run.trace for run in runs)))
    if fit is None:
        raise InputError("runs", "too few step sizes with a peak", "at least three", "play other budgets as well")
    if fit.high - fit.low >= WIDE:
        got = f"exponent {fit.exponent:.2f} with an interval of {fit.low:.2f} to {fit.high:.2f} from {fit.n} step sizes"
        raise InputError("runs", got, f"an interval less than {WIDE:g} wide", "play more step sizes")
    early, late, at = _early_and_late(chunked)
    level = late / early <= LEVEL
    square = fit.low - NEAR <= SQUARE <= fit.high + NEAR
    outcome: Outcome = "holds" if level and square else "holds in part" if level or square else "does not hold here"
    which = phrase("C, not L") if level else phrase("L as well as C")
    law, near = phrase("a square"), ""
    if not square and fit.low - NEAR <= 1 <= fit.high + NEAR:
        law = phrase("a straight line")
    elif not square:
        law = phrase("neither straight nor square")
        near = phrase(", nearest {exponent}", exponent=round(fit.exponent))
    return Verdict(
        claim="C5",
        text="Temporary memory goes with C² instead of L²",
        outcome=outcome,
        sentence=phrase(
            "It goes with {which}: equal chunks of one prompt needed {early:,.1f} MiB at its beginning and "
            "{late:,.1f} MiB at its end ({at:,} tokens in). The exponent of C is {exponent:.2f} (95 % "
            "interval {low:.2f} to {high:.2f}, steps of {min_tokens:,} to {max_tokens:,} tokens): "
            "{law}{near}.",
            which=which,
            early=early,
            late=late,
            at=at,
            exponent=fit.exponent,
            low=fit.low,
            high=fit.high,
            min_tokens=fit.min_tokens,
            max_tokens=fit.max_tokens,
            law=law,
            near=near,
        ),
        origin=origin_of(runs),
        article="C² instead of L².",
        arithmetic=(
            "kernels of the FlashAttention kind never hold the C × L table of scores; what is left (hidden states, "
            "MLP, logits) is a fixed size a token: exponent 1."
        ),
        untested="" if on_gpu(runs) else phrase("CUDA kernels."),
    )


def _expect_measured(*runs: Measured) -> None:
    """A simulated run has peaks by a law that was put into it, straight or not: it cannot tell which."""
    if any(run.trace.meta.get("label") == "simulated" for run in runs):
        raise InputError("runs", "simulated memory peaks", "measured ones", "play them on a live engine")


def _of_prefill(trace: Trace) -> Trace:
    """The same steps, without those whose peak the running streams may have made."""
    steps = trace.tables["steps"]
    idle = steps.filter(pc.field("prefill_tokens") == 0)["activation_bytes"].drop_null().to_numpy()
    # "lower" is a value that was measured: interpolation would mix the outlier in where there are few steps.
    floor = np.percentile(idle, _FLOOR_PERCENTILE, method="lower") if len(idle) else 0
    kept = steps.filter((pc.field("prefill_tokens") > 0) & (pc.field("activation_bytes") >= int(_ABOVE * floor)))
    return Trace({**trace.tables, "steps": kept}, trace.meta)


def _peaks(run: Measured) -> pd.DataFrame:
    """Steps of the long prompt's prefill that have a peak: ``tokens`` (all in the step), ``context``, ``mib``."""
    long = LongPrompt.of(run)
    batch, steps = run.trace.batch, run.trace.steps
    mine = batch[(batch["request"] == long.request) & batch["prefill"].eq(True)][["step", "context"]]
    found = mine.merge(steps[steps["activation_bytes"].notna()], on="step").sort_values("step")
    if found.empty:
        raise InputError("run", "no memory peak of a prefill step", "measured peaks", "play it on a live engine")
    return pd.DataFrame(
        {
            "tokens": found["prefill_tokens"] + found["decode_tokens"],
            "context": found["context"].astype(int),
            "mib": found["activation_bytes"].astype(float) / MIB,
        }
    )


def _early_and_late(run: Measured) -> tuple[float, float, int]:
    """Median peak of the first and the last quarter of equal chunks, MiB, and the context of the very last."""
    peaks = _peaks(run)
    size = peaks["tokens"].median()
    equal = peaks[(peaks["tokens"] - size).abs() <= 0.02 * size]
    quarter = len(equal) // 4
    if not quarter:
        raise InputError("run", f"{len(equal)} equal chunks", "at least four", "play it with a smaller chunk")
    early, late = (float(np.median(part)) for part in (equal["mib"].head(quarter), equal["mib"].tail(quarter)))
    return early, late, int(equal["context"].iloc[-1])
