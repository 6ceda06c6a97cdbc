"""The figures of a run as plain data: what a table, a panel and ``summary.json`` show."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow.compute as pc

from workbench.config import SLO
from workbench.i18n import marked
from workbench.metrics.classes import arrivals_known, duration, floors_p50, goodput, of_classes, rate, spread, total
from workbench.metrics.floors import request_floors
from workbench.metrics.gaps import Gaps
from workbench.metrics.preemptions import Preemptions
from workbench.metrics.requests import per_request
from workbench.metrics.stalls import explained, find_stalls
from workbench.metrics.step_table import StepTable
from workbench.trace import TABLES, Trace, floats

_NORMAL = {"requests.error", "requests.finish_reason", "memory.note"}  # null in a run where all went well
_WHY_EMPTY = {
    "steps": marked("no step records: an attached engine, or its probe was off"),
    "batch": marked("no step records: an attached engine, or its probe was off"),
    "memory": marked("no memory samples"),
    "client": marked("nobody measured how late the client ran: a simulated run, or one of an older version"),
}
_WHY_NULL = {
    "requests.sent_s": marked("never sent"),
    "requests.first_s": marked("no output arrived"),
    "requests.last_s": marked("no output arrived"),
    "requests.done_s": marked("the stream did not end"),
    "requests.status": marked("still going on"),
    "tokens.engine_s": marked("the record of the step that made the token was lost, or is not in yet"),
    "tokens.step": marked("the record of the step that made the token was lost, or is not in yet"),
    "knobs.applied_s": marked("no step ran under this revision"),
    "knobs.step": marked("no step ran under this revision"),
    "requests.cached_tokens": marked("the server did not say, or the request did not end"),
    "steps.predicted_ms": marked("the policy does not predict its steps"),
    "steps.memory_before_bytes": marked("no peak was measured in this step"),
    "steps.memory_peak_bytes": marked("no peak was measured in this step"),
    "steps.memory_after_bytes": marked("no peak was measured in this step"),
    "steps.activation_bytes": marked("no peak was measured in this step"),
}


def summary(trace: Trace, slo: SLO, stalled: pd.DataFrame | None = None) -> dict[str, Any]:
    """Return the figures of a run: plain numbers, texts and dicts, ready for JSON.

    ``stalled`` is what :func:`workbench.metrics.stalls` gave of the same trace, for those who have it: it takes long.

    Percentiles interpolate linearly and are over all gaps pooled. What was not measured is None; a rate is None where
    no time passed. Rates are over the time from the first send to the last thing that happened to a request.

    * ``requests``, ``ok``, ``errors``, ``cancelled``, ``unfinished``, ``tokens`` (output that arrived), ``duration_s``
    * ``gap_count``, ``gap_p50_ms``, ``gap_p90_ms``, ``gap_p99_ms``, ``gap_max_ms``; ``engine_gap_...`` and ``lag_...``
      likewise
    * ``ttft_count``, ``ttft_p50_s``, ... from the planned arrival; ``ttft_sent_...`` from the send; ``tpot_...``
    * ``classes``: the gap and TTFT figures, requests, goodput, stalls, preemptions, recomputed and cached tokens of
      each class, the most urgent priority first
    * ``output_tokens_per_s``, ``prompt_tokens_per_s`` (prompts of requests that got output), ``requests_per_s`` (ended
      well), ``goodput_per_s`` (and met the SLO)
    * ``compute_floor_s``, ``bandwidth_floor_s``: P50 of the least that a first token can take, where model and device
      are known; also of each class
    * ``schedule_lag_p99_s``, ``schedule_lag_max_s``
    * ``steps``, ``preemptions``, ``recomputed_tokens`` (computed again after a preemption), ``cached_tokens`` (of
      prompts, found in the prefix cache), ``peak_activation_bytes``, ``peak_memory_bytes`` by source
    * ``stalls``, ``stall_causes`` (how many of each cause that occurred), ``stalls_explained`` (share whose cause is
      known)
    * ``nulls``: for each column that lacks values, which share and why
    """
    gaps = Gaps.of(trace)
    requests = per_request(trace, slo, gaps)
    step_table = StepTable.of(trace)
    lost = Preemptions.among(step_table)
    stalled = find_stalls(trace, slo, gaps, step_table, lost) if stalled is None else stalled
    seconds = duration(trace, gaps)
    status = requests["status"].value_counts()
    served = requests[requests["ttft_s"].notna() | requests["ttft_sent_s"].notna()]
    prompts = total(served["prompt_tokens"].to_numpy(), none=None if len(served) else 0)
    causes = {str(cause): int(count) for cause, count in stalled["cause"].value_counts().items()}
    steps, memory = trace.tables["steps"], trace.tables["memory"]
    lag = spread(requests["schedule_lag_s"].to_numpy(), "schedule_lag", "s")
    # Other tools' result files may hold counts without arrivals.
    tokens = int(gaps.tokens.sum()) if gaps.names else int(requests["output_tokens"].sum())
    return {
        "requests": len(requests),
        "ok": int(status.get("ok", 0)),
        "errors": int(status.get("error", 0)),
        "cancelled": int(status.get("cancelled", 0)),
        "unfinished": int(status.get("unfinished", 0) + requests["status"].isna().sum()),
        "tokens": tokens,
        "duration_s": seconds,
        **spread(gaps.gap_ms, "gap", "ms"),
        **spread(gaps.engine_gap_ms, "engine_gap", "ms"),
        **spread(gaps.gap_ms - gaps.engine_gap_ms, "lag", "ms"),
        **spread(requests["ttft_s"].to_numpy(), "ttft", "s"),
        **spread(requests["ttft_sent_s"].to_numpy(), "ttft_sent", "s"),
        **spread(requests["tpot_ms"].to_numpy(), "tpot", "ms"),
        "classes": of_classes(trace, gaps, requests, stalled, step_table, lost, seconds),
        "output_tokens_per_s": rate(tokens, seconds),
        "prompt_tokens_per_s": None if prompts is None else rate(prompts, seconds),
        "requests_per_s": rate(status.get("ok", 0), seconds),
        "goodput_per_s": goodput(requests, gaps, seconds),
        **floors_p50(request_floors(trace, steps=step_table)),
        "schedule_lag_p99_s": lag["schedule_lag_p99_s"],
        "schedule_lag_max_s": lag["schedule_lag_max_s"],
        "steps": steps.num_rows or None,
        "preemptions": len(lost.of) if step_table.records_victims else None,
        "recomputed_tokens": total(lost.recomputed) if step_table.records_victims else None,
        "cached_tokens": total(floats(trace.tables["requests"]["cached_tokens"]), none=None),
        "peak_activation_bytes": pc.max(steps["activation_bytes"]).as_py(),
        "peak_memory_bytes": _peaks(memory),
        "stalls": len(stalled) if arrivals_known(requests, gaps) else None,
        "stall_causes": causes,
        "stalls_explained": explained(stalled),
        "nulls": nulls(trace),
    }


def nulls(trace: Trace) -> dict[str, dict[str, Any]]:
    """For each column that lacks values (``table.column``) or table that is empty: the share that is null, and why."""
    found: dict[str, dict[str, Any]] = {}
    stepless = not trace.tables["steps"].num_rows
    for name, schema in TABLES.items():
        table = trace.tables[name]
        if not table.num_rows:
            if name in _WHY_EMPTY:
                found[name] = {"share": 1.0, "why": _WHY_EMPTY[name]}
            continue
        for column in schema.names:
            missing, key = table[column].null_count, f"{name}.{column}"
            if missing and key not in _NORMAL:
                why = _WHY_NULL.get(key, marked("this engine does not report it"))
                if stepless and key in ("tokens.engine_s", "tokens.step"):
                    why = _WHY_EMPTY["steps"]
                found[key] = {"share": missing / table.num_rows, "why": why}
    return found


def _peaks(memory: Any) -> dict[str, int]:
    grouped = memory.group_by("source").aggregate([("bytes", "max")]).to_pylist()
    return {row["source"]: row["bytes_max"] for row in grouped if row["source"] and row["bytes_max"] is not None}
