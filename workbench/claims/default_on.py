"""C6: must ``--enable-chunked-prefill`` be set by hand?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.claims.verdict import Outcome, Verdict
from workbench.i18n import phrase

FLAG = "--enable-chunked-prefill"


def flag_needed(without_flags: Mapping[str, Any], engine: Mapping[str, Any]) -> Verdict:
    """Judge C6 from what vLLM resolves with no flag at all, and from what a live engine runs with.

    Holds when chunked prefill is off without a flag; does not hold here when it is on both in vLLM's own resolution
    and in an engine whose command does not have the flag; in part when only one of the two is so. An engine that
    has the flag in its command, or of which the command or the state is not known, is no witness: then vLLM's own
    resolution decides alone, and the verdict says what is untested.

    Args:
        without_flags: one answer of :func:`workbench.claims.resolved.resolve`.
        engine: ``describe()`` of a live engine, or ``run.meta["engine"]``.
    """
    live = (engine.get("resolved") or {}).get("chunked_prefill")
    argv = engine.get("engine_argv")
    given = any(word.startswith((FLAG, "--no" + FLAG[1:])) for word in argv or ())
    command = (
        phrase("is not known") if argv is None else phrase("has the flag") if given else phrase("has no such flag")
    )
    witness = live is not None and argv is not None and not given
    default_on = bool(without_flags["enable_chunked_prefill"])
    outcome: Outcome = "does not hold here" if default_on else "holds"
    if witness and bool(live) != default_on:
        outcome = "holds in part"
    state = phrase("not known") if live is None else phrase("on") if live else phrase("off")
    return Verdict(
        claim="C6",
        text=phrase("{flag} must be set by hand", flag=FLAG),
        outcome=outcome,
        sentence=phrase(
            "With no flag at all vLLM resolves enable_chunked_prefill to {default_on} (with "
            "max_num_batched_tokens {max_num_batched_tokens:,}); in the running engine, whose command "
            "{command}, it is {state}.",
            default_on=phrase("on") if default_on else phrase("off"),
            max_num_batched_tokens=without_flags["max_num_batched_tokens"],
            command=command,
            state=state,
        ),
        origin=phrase(
            "{label}, {vllm}",
            label=phrase(engine.get("label") or "origin not stated"),
            vllm=engine.get("vllm") or phrase("vLLM version not known"),
        ),
        article="the flag is part of the recommended command.",
        untested="" if witness else phrase("what an engine runs with whose command does not have the flag."),
    )
