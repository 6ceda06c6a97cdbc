"""Hand-made runs of which every answer is known: streams that decode, and one prompt in given chunks."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from workbench.config import SLO
from workbench.engine_stamps import join_engine_stamps
from workbench.trace import TABLES, Trace, table_of

MIB = 1 << 20


def made(
    chunks,
    seconds,
    *,
    streams=4,
    lively=0,
    usual=0.010,
    budget=4096,
    chunk=0,
    policy="chunked",
    peaks=None,
    floor=1.0,
    label="live CPU",
    model="tiny-long",
    engine=None,
    slo_ms=200.0,
    planned=0.0,
):
    """A run. 10 steps of ``usual`` seconds with a token for each stream, then the prompt's chunks, then 5 such steps.

    Args:
        chunks: prompt tokens of each step; those of the prompt are their sum.
        seconds: time of each of these steps.
        streams: how many decode all the time.
        lively: how many of them get tokens during the prefill too, every ``usual`` seconds.
        peaks: MiB of each chunk's step.
        floor: MiB of a step without prefill.
        planned: when the prompt was to arrive, after the end of the tenth step.
    """
    plan = [(usual, 0)] * 10 + list(zip(seconds, chunks, strict=True)) + [(usual, 0)] * 5
    ends, now = [], 1.0
    for took, _ in plan:
        now += took
        ends.append(now)
    names = [f"chat-{n}" for n in range(streams)]
    steps, batch, tokens = [], [], []
    done = 0
    for n, ((took, piece), end) in enumerate(zip(plan, ends, strict=True)):
        if not streams and not piece:
            continue
        batch += [
            {"step": n, "request": name, "tokens": 1, "context": n, "prefill": False, "emitted": 1} for name in names
        ]
        if piece:
            last = done + piece == sum(chunks)
            batch.append(
                {"step": n, "request": "doc", "tokens": piece, "context": done, "prefill": True, "emitted": int(last)}
            )
            done += piece
        mib = floor if not piece else peaks[n - 10] if peaks else None
        steps.append(
            {
                "step": n,
                "scheduled_s": end - took,
                "start_s": end - took,
                "end_s": end,
                "prefill_tokens": piece,
                "decode_tokens": streams,
                "revision": 3,
                "preempted": [],
                "activation_bytes": None if mib is None or peaks is None else int(mib * MIB),
            }
        )
        tokens += [{"request": name, "index": n, "n": 1, "client_s": end} for name in names]
    begin, end = ends[9], ends[9 + len(chunks)]
    for name in names[:lively]:
        at = begin + usual
        while at < end:
            tokens.append({"request": name, "index": 99, "n": 1, "client_s": at})
            at += usual
    tokens += [
        {"request": "doc", "index": 0, "n": 1, "client_s": end},
        {"request": "doc", "index": 1, "n": 1, "client_s": now},
    ]
    requests = [
        {"request": name, "class": "chat", "status": "ok", "prompt_tokens": 10, "planned_s": 0.9, "sent_s": 0.9}
        for name in names
    ]
    requests.append(
        {
            "request": "doc",
            "class": "long",
            "status": "ok",
            "prompt_tokens": sum(chunks),
            "planned_s": begin + planned,
            "sent_s": begin + planned,
        }
    )
    knobs = [{"revision": 3, "budget": budget, "chunk": chunk, "policy": policy, "max_running": 64}]
    rows = {"requests": requests, "tokens": tokens, "batch": batch, "steps": steps, "knobs": knobs}
    tables = {name: table_of(name, rows.get(name, [])) for name in TABLES}
    tables["tokens"] = join_engine_stamps(tables["tokens"], tables["batch"], tables["steps"])
    meta = {"label": label, "status": "complete", "engine": {"config": {"model": model}, **(engine or {})}}
    return SimpleNamespace(trace=Trace(tables, meta), slo=SLO(gap_ms=slo_ms))


@pytest.fixture
def make():
    """The builder."""
    return made


def steps_made(steps, requests, *, knobs=None, label="live CPU", model="smollm2", meta=None, slo=None):
    """A run, step by step, 0.1 s each from 1.0 s on; every request gets its output when the step ends.

    Args:
        steps: for each its parts ``{request: (tokens, context, prefill, emitted)}``, or a pair of these and what else
            the step's row has, such as ``{"preempted": ["a"], "kv_use": 0.97}``.
        requests: ``{request: {"priority": 2, "prompt_tokens": 100}}``; class by priority, sent at 0.5 s.
        knobs: of the only revision; budget 64 and policy chunked where not given.
    """
    rows, batch, tokens = [], [], []
    counts = dict.fromkeys(requests, 0)
    for n, step in enumerate(steps):
        parts, more = step if isinstance(step, tuple) else (step, {})
        end = 1.0 + 0.1 * (n + 1)
        for name, (count, context, prefill, emitted) in parts.items():
            batch.append(
                {
                    "step": n,
                    "request": name,
                    "tokens": count,
                    "context": context,
                    "prefill": prefill,
                    "emitted": emitted,
                }
            )
            if emitted:
                tokens.append({"request": name, "index": counts[name], "n": emitted, "client_s": end})
                counts[name] += emitted
        prefills = [count for count, _, prefill, _ in parts.values() if prefill]
        decodes = [count for count, _, prefill, _ in parts.values() if not prefill]
        row = {"step": n, "scheduled_s": end - 0.1, "start_s": end - 0.1, "end_s": end, "revision": 1, "preempted": []}
        rows.append(
            row
            | {"prefill_tokens": sum(prefills), "decode_tokens": sum(decodes), "prefills": len(prefills)}
            | {"decodes": len(decodes), "kv_use": 0.5}
            | more
        )
    classes = {0: "vip", 1: "normal", 2: "offline"}
    asked = [
        {"request": name, "class": classes.get(facts.get("priority", 1)), "status": "ok", "planned_s": 0.5}
        | {"sent_s": 0.5, "priority": 1}
        | facts
        for name, facts in requests.items()
    ]
    knob = {"revision": 1, "budget": 64, "chunk": 0, "policy": "chunked", "max_running": 8, "aging_s": 30.0}
    knob |= {"prefix_cache": True} | (knobs or {})
    made_rows = {"requests": asked, "tokens": tokens, "batch": batch, "steps": rows, "knobs": [knob]}
    tables = {name: table_of(name, made_rows.get(name, [])) for name in TABLES}
    tables["tokens"] = join_engine_stamps(tables["tokens"], tables["batch"], tables["steps"])
    about = {"label": label, "status": "complete", "engine": {"config": {"model": model}}, **(meta or {})}
    return SimpleNamespace(trace=Trace(tables, about), slo=slo or SLO())


@pytest.fixture
def play():
    """The builder of runs step by step."""
    return steps_made
