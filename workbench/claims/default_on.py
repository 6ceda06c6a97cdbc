"""C6: must ``--enable-chunked-prefill`` be set by hand?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.claims.verdict import Outcome, Verdict

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
    command = "is not known" if argv is None else "has the flag" if given else "has no such flag"
    witness = live is not None and argv is not None and not given
    default_on = bool(without_flags["enable_chunked_prefill"])
    outcome: Outcome = "does not hold here" if default_on else "holds"
    if witness and bool(live) != default_on:
        outcome = "holds in part"
    state = "not known" if live is None else "on" if live else "off"
    return Verdict(
        claim="C6",
        text=f"{FLAG} must be set by hand",
        outcome=outcome,
        sentence=(
            f"With no flag at all vLLM resolves enable_chunked_prefill to {'on' if default_on else 'off'} (with "
            f"max_num_batched_tokens {without_flags['max_num_batched_tokens']:,}); in the running engine, whose "
            f"command {command}, it is {state}."
        ),
        origin=f"{engine.get('label') or 'origin not stated'}, {engine.get('vllm') or 'vLLM version not known'}",
        article="the flag is part of the recommended command.",
        untested="" if witness else "what an engine runs with whose command does not have the flag.",
    )
