"""C9: decode alone leaves the compute units idle; prefill that rides along in the same steps uses them."""

from __future__ import annotations

import pandas as pd

from workbench.claims.verdict import Measured, Outcome, Verdict, on_gpu, origin_of
from workbench.errors import InputError
from workbench.hardware import gpu
from workbench.i18n import phrase
from workbench.metrics.mfu import mfu_by_kind, missing, peak_of

IDLE = 0.15  # the article: decode alone uses less
BEFORE, AFTER = 0.42, 0.78  # the article's MFU without and with prefill riding along
RISE = AFTER / BEFORE
RISES = 1.1  # less may be noise; more is a rise, if not the article's
_STEPS = 5  # of each kind: fewer may be the first ones, which are slow, or the last


def utilisation(run: Measured, apart: Measured | None = None) -> Verdict:
    """Judge C9 from a run in which prompts were prefilled in steps that decoded too.

    Holds when steps of decodes alone stay below 15 % MFU and mixed steps reach 1.86 times theirs (78 % over 42 %); in
    part when they stay below it, or mixed steps have at least 1.1 times theirs. MFU is weighted with time:
    FLOPs of all steps of a kind over what the peak would have done meanwhile.

    Args:
        run: with decode-only and mixed steps.
        apart: the same load with prefill kept out of the steps that decode; the MFU of the two runs as a whole is then
            named as well.

    Raises:
        InputError: a run has no MFU, or too few steps of a kind.
    """
    kinds = _kinds(run)
    for kind in ("decode", "mixed"):
        steps = int(kinds["steps"].get(kind, 0))
        if steps < _STEPS:
            raise InputError(
                "run", f"{steps} {kind} steps", f"at least {_STEPS}", "play chats and long prompts, policy chunked"
            )
    decode, mixed = float(kinds["mfu"]["decode"]), float(kinds["mfu"]["mixed"])
    idle = decode < IDLE
    outcome: Outcome = "holds in part" if idle or mixed >= RISES * decode else "does not hold here"
    if idle and mixed >= RISE * decode:
        outcome = "holds"
    whole = ""
    if apart is not None:
        one, other = float(kinds["mfu"]["all"]), float(_kinds(apart)["mfu"]["all"])
        whole = phrase(
            " While steps ran, the whole run reached {one:.1%}, with prefill kept apart {other:.1%}.",
            one=one,
            other=other,
        )
    peak = peak_of(run.trace)
    source = peak["source"] if peak else ""
    h100 = gpu("h100-sxm")
    streams = IDLE * h100.ridge
    return Verdict(
        claim="C9",
        text="Decode alone leaves compute under 15 % used; prefill riding along raises MFU",
        outcome=outcome,
        sentence=phrase(
            "{decodes} reached {decode:.1%} MFU, {riding} {mixed:.1%}: {times:.2g} times as much.{whole} "
            "Peak: {source}.",
            decodes=_words(kinds, "decode"),
            decode=decode,
            riding=_words(kinds, "mixed"),
            mixed=mixed,
            times=mixed / decode,
            whole=whole,
            source=source,
        ),
        origin=origin_of([run] if apart is None else [run, apart]),
        article=phrase("Under {idle:.0%}; {before:.0%} rises to {after:.0%}.", idle=IDLE, before=BEFORE, after=AFTER),
        arithmetic=phrase(
            "a step that reads bf16 weights once and decodes n streams is bound by memory to n / "
            "{ridge:,.0f} of the peak of an {name}, so {idle:.0%} is passed from about {streams:,.0f} "
            "streams on: decode alone stays under it only with fewer.",
            ridge=h100.ridge,
            name=h100.name,
            idle=IDLE,
            streams=streams,
        ),
        untested="" if on_gpu([run]) else phrase("a GPU, whose compute outruns its memory by far more than a CPU's."),
    )


def _kinds(run: Measured) -> pd.DataFrame:
    kinds = mfu_by_kind(run.trace)
    if "all" not in kinds.index or kinds["mfu"].isna().any():
        why = missing(run.trace) or "no step with all its parts on record"
        raise InputError("run", why, "steps, a model and a peak to count with", "play it on a live engine")
    return kinds


def _words(kinds: pd.DataFrame, kind: str) -> str:
    row = kinds.loc[kind]
    name = phrase("steps of decodes alone") if kind == "decode" else phrase("mixed steps")
    return phrase(
        "{steps:,} {name} ({tokens_per_step:,.1f} tokens each)",
        steps=int(row["steps"]),
        name=name,
        tokens_per_step=row["tokens_per_step"],
    )
