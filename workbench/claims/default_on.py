"""C6: must ``--enable-chunked-prefill`` be set by hand?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.claims.verdict import Outcome, Verdict

FLAG = "--enable-chunked-prefill"


def flag_needed(without_flags: Mapping[str, Any], engine: Mapping[str, Any]) -> Verdict:
    """Judge C6 from what vLLM resolves with no flag at all, and from what a live engine runs with.

    Holds when chunked prefill is off without a flag; does not hold here when it is on both in vLLM's own resolution
    and in an engine whose command does not have the flag; in part when only one of the two is so.

    Args:
        without_flags: one answer of :func:`workbench.claims.resolved.resolve`.
        engine: ``describe()`` of a live engine, or ``run.meta["engine"]``.
    """
    live = (engine.get("resolved") or {}).get("chunked_prefill")
    given = any(word.startswith((FLAG, "--no" + FLAG[1:])) for word in engine.get("engine_argv") or ())
    default_on, live_on = bool(without_flags["enable_chunked_prefill"]), bool(live) and not given
    outcome: Outcome = "holds"
    if default_on and live_on:
        outcome = "does not hold here"
    elif default_on or live_on:
        outcome = "holds in part"
    state = "not known" if live is None else "on" if live else "off"
    return Verdict(
        claim="C6",
        text=f"{FLAG} must be set by hand",
        outcome=outcome,
        sentence=(
            f"With no flag at all vLLM resolves enable_chunked_prefill to {'on' if default_on else 'off'} (with "
            f"max_num_batched_tokens {without_flags['max_num_batched_tokens']:,}); in the running engine, whose "
            f"command has {'the' if given else 'no such'} flag, it is {state}."
        ),
        origin=f"{engine.get('label') or 'origin not stated'}, {engine.get('vllm') or 'vLLM version not known'}",
        article="the flag is part of the recommended command.",
    )
