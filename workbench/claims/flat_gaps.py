"""C3: chunked, the stall goes away; gaps stay flat while the long prompt's TTFT grows."""

from __future__ import annotations

from workbench.claims.long_prompt import LongPrompt
from workbench.claims.verdict import Measured, Outcome, Verdict, on_gpu, origin_of
from workbench.errors import InputError
from workbench.i18n import phrase, phrases

# Flat: during the prefill even the 99th percentile is at most twice the usual gap. A step that carries a chunk takes
# longer than one without, so "no difference at all" would be a bar that nothing can pass.
FLAT = 2.0
# Plays of one setting on one machine differ by some percent; a growth below this may be noise.
GROWTH = 1.05
# Chunking that does not even halve the longest gap has not made the stall go away.
HALF = 0.5


def flat_gaps(*runs: Measured) -> Verdict:
    """Judge C3 from runs of one workload: one with the long prompt in one step, the others chunked.

    Judged is the chunked run with the shortest longest gap. Holds when it has no gap above the SLO during the prefill
    (and the one step has), its 99th percentile during the prefill is at most twice the usual gap, and its TTFT is at
    least 5 % longer. Does not hold when its longest gap is more than half of the one step's. In part otherwise.

    Raises:
        InputError: there is not one run in one step and one chunked, no stream ran through a prefill, or none had a
            gap before it.
    """
    prompts = [(LongPrompt.of(run), run.slo.gap_ms) for run in runs]
    if not all(long.streams for long, _ in prompts):
        raise InputError(
            "runs", "a run without a stream", "streams all through the prefill", "let the chats run longer"
        )
    whole = next((long for long, _ in prompts if len(long.chunks) == 1), None)
    chunked = [(long, slo_ms) for long, slo_ms in prompts if len(long.chunks) > 1]
    if whole is None or not chunked:
        raise InputError("runs", len(runs), "one with the prompt in one step and one chunked", "play both")
    best, slo_ms = min(chunked, key=lambda one: one[0].during(100))
    if not len(best.before_ms):
        raise InputError(
            "runs", f"no gap before the prefill at {best.setting}", "the usual gap", "drop the prompt later"
        )
    gone = best.during(100) <= slo_ms < whole.during(100)
    ratio, growth = best.during(99) / best.usual_ms, best.ttft_s / whole.ttft_s
    outcome: Outcome = "holds in part"
    if best.during(100) > HALF * whole.during(100):
        outcome = "does not hold here"
    elif gone and ratio <= FLAT and growth >= GROWTH:
        outcome = "holds"
    others = phrases(
        ", ",
        [
            phrase("{setting} {ms:,.0f} ms / {s:,.1f} s", setting=long.setting, ms=long.during(100), s=long.ttft_s)
            for long, _ in chunked
        ],
    )
    after = best.during(100) > slo_ms
    if whole.during(100) > slo_ms:
        stalls = phrase("stalls are left") if after else phrase("no stall is left")
    else:
        stalls = (
            phrase("there was no stall before, but there is one now")
            if after
            else phrase("there was no stall before either")
        )
    moves = phrase("falls") if best.during(100) < whole.during(100) else phrase("does not fall: it goes")
    shape = phrase("flat") if ratio <= FLAT else phrase("bounded by the time of a chunk, not flat")
    grows = (
        phrase("grows by {growth:.0%}", growth=growth - 1)
        if growth >= GROWTH
        else phrase("hardly changes ({growth:+.0%})", growth=growth - 1)
    )
    return Verdict(
        claim="C3",
        text="Chunked, the stall goes away: token gaps stay flat while the long prompt's TTFT grows step by step",
        outcome=outcome,
        sentence=phrase(
            "The longest gap {moves} from {before_ms:,.0f} ms in one step to {after_ms:,.0f} ms at "
            "{setting}; {stalls} above the SLO of {slo_ms:,.0f} ms. Gaps during the prefill (P99 "
            "{p99_ms:,.0f} ms) are {ratio:,.1f} times the usual {usual_ms:,.0f} ms: {shape}. TTFT goes "
            "from {before_s:,.1f} s to {after_s:,.1f} s: it {grows}. Longest gap / TTFT of all: one step "
            "{before_ms:,.0f} ms / {before_s:,.1f} s, {others}.",
            moves=moves,
            before_ms=whole.during(100),
            after_ms=best.during(100),
            setting=best.setting,
            stalls=stalls,
            slo_ms=slo_ms,
            p99_ms=best.during(99),
            ratio=ratio,
            usual_ms=best.usual_ms,
            shape=shape,
            before_s=whole.ttft_s,
            after_s=best.ttft_s,
            grows=grows,
            others=others,
        ),
        origin=origin_of(runs),
        article="gaps stay flat, TTFT grows step by step (no numbers given).",
        untested="" if on_gpu(runs) else phrase("a GPU, where a chunk of this size takes far less time."),
    )
