"""C1: a prompt that is prefilled in one step freezes every stream that runs."""

from __future__ import annotations

import numpy as np

from workbench.claims.limits import H100, LLAMA_70B
from workbench.claims.long_prompt import LongPrompt
from workbench.claims.verdict import Measured, Outcome, Verdict, on_gpu, origin_of
from workbench.errors import InputError

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
    untested = [] if long.tokens >= _TOKENS else [f"a prompt of {_TOKENS:,} tokens"]
    if not on_gpu([run]):
        untested.append("how long it lasts on a GPU")
    return Verdict(
        claim="C1",
        text="A monolithic 32K prefill holds the GPU for seconds and freezes every running stream",
        outcome=outcome,
        sentence=(
            f"{frozen} of {every} running streams stood still for at least {FROZEN:.0%} of the {long.seconds:,.1f} s "
            f"in which one step prefilled {long.tokens:,} tokens; the longest gap was {long.during(100) / 1e3:,.1f} s, "
            f"the usual one {long.usual_ms:,.0f} ms."
        ),
        origin=origin_of([run]),
        article="50 streams stood still for about 3 s, 200 streams for 600 ms.",
        arithmetic=(
            f"{_TOKENS:,} tokens through {LLAMA_70B.name} are {flop:.1e} FLOP, {flop / peak:.1f} s at the full peak of "
            f"{_GPUS} {H100.name}s: 3 s is {flop / peak / 3:.0%} of that peak, 600 ms would be "
            f"{flop / peak / 0.6:.0%}: 600 ms is impossible and 3 s is not, so the two figures cannot both be of this "
            "model on these GPUs."
        ),
        untested=", and ".join(untested) + ("." if untested else ""),
    )
