"""A recorded live run as a job for the simulator: what was asked of the engine, and nothing of what it answered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from workbench.engine.probe.wire import KnobChange
from workbench.errors import InputError, WorkbenchError
from workbench.frozen import parse
from workbench.simulate.hardware_setup import Setup
from workbench.simulate.job import Ask, SimJob
from workbench.simulate.rows import KNOBS, SWITCHES
from workbench.simulate.steptime import StepTime
from workbench.simulated_config import SimulatedConfig
from workbench.trace import Trace
from workbench.workload.arrivals import Concurrency
from workbench.workload.build import build_workload
from workbench.workload.scenario import Scenario

Prompts = Mapping[str, Sequence[int]]

_FIX = "choose a run that was played to its end on an engine of ours"


def job_of(trace: Trace, step_time: StepTime, *, prompts: Prompts | None = None) -> SimJob:
    """The job that repeats a live run: its requests at their planned times on its engine, under its knobs.

    Taken from the run: planned arrival, prompt and output tokens, class and priority of each request, knobs with the
    times at which they were set, start-up fields, KV blocks and their size. For classes of fixed concurrency the time
    at which the stream opened is taken, as their later arrivals are an outcome.

    Args:
        trace: a live run that is complete.
        step_time: the model that steps take their time from.
        prompts: token ids of each request, which only an engine with a prefix cache needs; see :func:`prompts_of`.

    Raises:
        InputError: the run is not live, not complete, lacks what is needed, or its prompts are needed and missing.
    """
    _check(trace)
    meta = trace.meta
    resolved, known = meta["engine"]["resolved"], set(SimulatedConfig.model_fields)
    fields = {name: value for name, value in meta["engine"]["config"].items() if name in known}
    # What vLLM made of them. The GPU's name does not matter: nothing is looked up, all there is to know was recorded.
    fields |= {
        "gpu": "cpu" if meta["label"] == "live CPU" else "H100",
        "max_num_batched_tokens": resolved["max_num_batched_tokens"],
        "max_num_seqs": resolved["max_num_seqs"],
        "max_model_len": resolved["max_model_len"],
        "enable_prefix_caching": resolved["prefix_caching"],
        "async_scheduling": resolved["async_scheduling"],
    }
    config = parse(SimulatedConfig, fields)
    if config.enable_prefix_caching and prompts is None:
        raise InputError(
            f"prompts of run {meta.get('id')}", "none", "token ids, since its engine had a prefix cache", "give them"
        )
    begin, changes = _knobs(trace)
    setup = Setup(config, None, None, step_time, None, resolved["kv_blocks"], resolved["block_size"], None)
    return setup.job(
        requests=_asks(trace, prompts if config.enable_prefix_caching else None),
        knobs=begin,
        changes=changes,
        concurrency={name: stream.in_flight for name, (_, stream) in _closed_loops(meta).items()},
        seed=int(meta.get("seed") or 0),
    )


def prompts_of(trace: Trace) -> Prompts | None:
    """The prompts of a run, made again from its scenario and seed; none where its engine had no prefix cache.

    Raises:
        InputError: they cannot be made again: prompts were dropped in by hand, or the model is not there.
    """
    meta = trace.meta
    if not (meta.get("engine") or {}).get("resolved", {}).get("prefix_caching"):
        return None
    from workbench.models import resolve_model  # here: it is not needed without a prefix cache

    source = meta.get("workload") or {}
    if "scenario" not in source:
        raise InputError(f"prompts of run {meta.get('id')}", "no scenario", "a run of a scenario", _FIX)
    tokenizer = resolve_model(meta["engine"]["config"]["model"]).tokenizer_path
    if tokenizer is None:
        raise InputError("model", meta["engine"]["config"]["model"], "a model with a tokenizer.json", "choose another")
    scenario = parse(Scenario, source["scenario"])
    workload = build_workload(scenario, tokenizer, source["max_model_len"], source["seed"], source["salt"])
    return {request.request: request.prompt for request in workload.requests}


def _check(trace: Trace) -> None:
    """Refuse a run that cannot be held against anything."""
    meta, name = trace.meta, f"run {trace.meta.get('id')}"
    label, status = str(meta.get("label") or ""), meta.get("status")
    if not label.startswith("live"):
        raise InputError(name, label or "a run of unknown origin", "a live run", "choose one that an engine has played")
    if status != "complete":
        raise InputError(name, status, "a run that is complete", _FIX)
    if not ((meta.get("engine") or {}).get("resolved") or {}).get("kv_blocks"):
        raise InputError(name, "no record of its KV blocks", "what the probe says of the engine", _FIX)
    requests, steps = trace.tables["requests"], trace.tables["steps"]
    if not requests.num_rows or not steps.num_rows:
        raise InputError(name, f"{requests.num_rows} requests, {steps.num_rows} steps", "some of both", _FIX)
    bad = sorted({str(one) for one in requests["status"].to_pylist() if one != "ok"})
    if bad:
        raise InputError(name, f"requests that are {', '.join(bad)}", "requests that all ended well", _FIX)


def _asks(trace: Trace, prompts: Prompts | None) -> list[Ask]:
    loops = _closed_loops(trace.meta)
    asks = []
    for row in trace.tables["requests"].to_pylist():
        name, kind = row["request"], row["class"]
        ids = b"" if prompts is None else np.asarray(prompts.get(name, ()), "<i4").tobytes()
        if prompts is not None and len(ids) != 4 * row["prompt_tokens"]:
            raise InputError(
                f"prompt of {name}",
                f"{len(ids) // 4} tokens",
                f"{row['prompt_tokens']}, as in run {trace.meta.get('id')}",
                "a prompt that was dropped in by hand cannot be made again: choose another run",
            )
        opens = loops[kind][0] if kind in loops else row["planned_s"]
        asks.append(Ask(name, kind, row["priority"] or 0, opens, row["prompt_tokens"], row["max_tokens"], ids))
    numbers: dict[str, int] = defaultdict(int)
    for ask in asks:  # of a closed loop, the first in line goes first: its name ends in its number
        tail = ask.request.rpartition("-")[2]
        numbers[ask.request] = int(tail) if tail.isdecimal() else 0
    return sorted(asks, key=lambda ask: (ask.arrival_time, numbers[ask.request] if ask.class_name in loops else 0))


def _closed_loops(meta: Mapping[str, Any]) -> dict[str, tuple[float, Concurrency]]:
    """When the stream of each class of fixed concurrency opens, and how wide it is."""
    source = (meta.get("workload") or {}).get("scenario")
    if not source:
        return {}
    try:
        streams = parse(Scenario, source).streams
    except WorkbenchError:  # of another version: what it said of its streams cannot be read any more
        raise InputError("scenario", meta.get("scenario"), "one that this version can read", _FIX) from None
    return {s.class_name: (s.start_s, s.arrivals) for s in streams if isinstance(s.arrivals, Concurrency)}


def _knobs(trace: Trace) -> tuple[KnobChange, list[tuple[float, KnobChange]]]:
    """Knobs in force at the start, and those that were set later with their times."""
    rows = sorted(trace.tables["knobs"].to_pylist(), key=lambda row: row["revision"])
    if not rows:
        raise InputError(f"run {trace.meta.get('id')}", "no knobs", "a record of the knobs in force", _FIX)
    made = []
    for row in rows:
        given = {name: row[name] for name in (*KNOBS, *SWITCHES) if row[name] is not None}
        made.append((row["sent_s"] or 0.0, KnobChange(revision=row["revision"], **given)))
    return made[0][1], made[1:]
