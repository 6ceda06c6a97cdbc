"""C1: a prompt that is prefilled in one step freezes every stream that runs."""

from __future__ import annotations

import numpy as np

from workbench.claims.limits import H100, LLAMA_70B
from workbench.claims.long_prompt import LongPrompt
from workbench.claims.verdict import Measured, Outcome, Verdict, ended, on_gpu, origin_of
from workbench.errors import InputError
from workbench.i18n import phrase

# A stream is frozen when one of its gaps covers nearly the whole prefill. Not all of it, since a token of the step
# before may still be on its way to the client when the step begins.
FROZEN = 0.9
SECONDS = 1.0  # "for seconds": at least one
_TOKENS, _GPUS = 32_768, 4


def freeze(run: Measured) -> Verdict:
    """Judge C1 from a run in which a long prompt was prefilled in one step while streams ran.

    Holds when every stream was frozen for at least nine tenths of a prefill that took a second or more; in part when
    at least half of them were, or the prefill was shorter; otherwise it does not hold here.

    Raises:
        InputError: the prompt took several steps, or no stream ran all through its prefill.
    """
    long = LongPrompt.of(run)
    if len(long.chunks) > 1:
        raise InputError("run", f"a prefill in {len(long.chunks)} steps", "one step", "play it with policy monolithic")
    if not long.streams:
        raise InputError("run", "no stream that ran through the prefill", "at least one", "let the chats run longer")
    frozen = int(np.sum(long.worst_ms >= FROZEN * 1e3 * long.seconds))
    every = len(long.streams)
    outcome: Outcome = "does not hold here"
    if frozen == every and long.seconds >= SECONDS:
        outcome = "holds"
    elif 2 * frozen >= every:
        outcome = "holds in part"
    flop, peak = float(LLAMA_70B.flops(_TOKENS, 0, 1)), _GPUS * H100.flops.value
    untested = [] if long.tokens >= _TOKENS else [phrase("a prompt of {tokens:,} tokens", tokens=_TOKENS)]
    if not on_gpu([run]):
        untested.append(phrase("how long it lasts on a GPU"))
    return Verdict(
        claim="C1",
        text="A monolithic 32K prefill holds the GPU for seconds and freezes every running stream",
        outcome=outcome,
        sentence=phrase(
            "{frozen} of {every} running streams stood still for at least {part:.0%} of the "
            "{seconds:,.1f} s in which one step prefilled {tokens:,} tokens; the longest gap was "
            "{longest_s:,.1f} s, the usual one {usual_ms:,.0f} ms.",
            frozen=frozen,
            every=every,
            part=FROZEN,
            seconds=long.seconds,
            tokens=long.tokens,
            longest_s=long.during(100) / 1000.0,
            usual_ms=long.usual_ms,
        ),
        origin=origin_of([run]),
        article="50 streams stood still for about 3 s, 200 streams for 600 ms.",
        arithmetic=phrase(
            "{tokens:,} tokens through {name} are {flop:.1e} FLOP, {seconds:.1f} s at the full peak of "
            "{gpus} {gpu}s: 3 s is {at_3_s:.0%} of that peak, 600 ms would be {at_600_ms:.0%}: 600 ms is "
            "impossible and 3 s is not, so the two figures cannot both be of this model on these GPUs.",
            tokens=_TOKENS,
            name=LLAMA_70B.name,
            flop=flop,
            seconds=flop / peak,
            gpus=_GPUS,
            gpu=H100.name,
            at_3_s=flop / peak / 3,
            at_600_ms=flop / peak / 0.6,
        ),
        untested=ended(", and ", untested),
    )
