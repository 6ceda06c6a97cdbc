"""What each request of a run took from the prefix cache, and what it had computed, from the step records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from workbench import metrics
from workbench.claims.journal import Journal
from workbench.claims.verdict import Measured
from workbench.errors import InputError


def cache_lookups(run: Measured) -> pd.DataFrame:
    """One row a request that was computed, in the order of their first steps; the index is its name.

    Columns: ``prompt_tokens``; ``cached_tokens`` (that had KV before its first step); ``computed_tokens`` (prompt
    tokens of its steps, until it was preempted for the first time); ``prefill_steps`` (how many those were); ``whole``
    (its prompt was computed to the end before that); ``shared_tokens`` (whole blocks of its shared prefix, where an
    earlier request of the run had computed that prefix by then; NaN otherwise); ``ttft_s``.

    Raises:
        InputError: the run has no step records of a request.
    """
    journal = Journal.of(run)
    prompts, table = journal.of_request("prompt_tokens"), journal.table
    contexts = np.split(table.part_context[table.by_request], np.cumsum([len(at) for at in journal.at])[:-1])
    rows: dict[str, dict[str, Any]] = {}
    for one, name in enumerate(table.names):
        if not len(journal.at[one]) or np.isnan(prompts[one]):
            continue
        until = int(np.searchsorted(journal.at[one], min(journal.lost[one], default=len(table.number))))
        computed, emitted = journal.prefill[one][:until], journal.emitted[one][:until]
        rows[name] = {
            "prompt_tokens": int(prompts[one]),
            "cached_tokens": int(contexts[one][0]),
            "computed_tokens": int(computed.sum()),
            "prefill_steps": int(np.sum(computed > 0)),
            "whole": bool(emitted.any()),
            "begins": int(journal.at[one][0]),
            "ends": int(journal.at[one][int(np.argmax(emitted > 0))]) if emitted.any() else len(table.number),
        }
    if not rows:
        raise InputError("run", "no request with its steps", "step records of whole requests", "play it again")
    found = pd.DataFrame.from_dict(rows, orient="index").sort_values("begins", kind="stable")
    ttft = metrics.request_metrics(run.trace, run.slo).set_index("request")["ttft_s"]
    found["ttft_s"] = ttft.reindex(found.index)
    found["shared_tokens"] = _shared(found, run.trace.meta)
    return found.drop(columns=["begins", "ends"])


def _shared(found: pd.DataFrame, meta: Mapping[str, Any]) -> list[float]:
    """Tokens that the cache must have had for each request, from the plan of the workload; NaN where that is open.

    A prefix of n tokens is in the cache in whole blocks (vLLM hashes full blocks only), once the steps of a request
    with the same prefix are over.
    """
    scenario = (meta.get("workload") or {}).get("scenario") or {}
    block = ((meta.get("engine") or {}).get("resolved") or {}).get("block_size")
    plans = {stream.get("class"): stream.get("shared_prefix") for stream in scenario.get("streams", ())}
    computed: dict[tuple[str, int], int] = {}  # prefix: the step after which it is in the cache
    said = []
    for name, row in found.iterrows():
        named = re.fullmatch(r"(.+)-(\d+)", str(name))
        plan = plans.get(named[1]) if named else None
        if named is None or plan is None or not block:
            said.append(float("nan"))
            continue
        prefix = (named[1], int(named[2]) % int(plan.get("groups", 1)))
        known = computed.get(prefix, len(found) + int(found["ends"].max())) < row["begins"]
        said.append(float(plan["tokens"] // block * block) if known else float("nan"))
        computed[prefix] = min(computed.get(prefix, row["ends"]), row["ends"])
    return said
