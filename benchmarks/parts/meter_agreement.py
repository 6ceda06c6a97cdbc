"""Our client and ``vllm bench serve`` on one live engine, the same load in turn: do their medians agree?"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.parts import meter_vllm
from benchmarks.parts.meter_rivals import Load
from benchmarks.parts.stats import say
from benchmarks.parts.stock import Rows, StockEngine
from workbench.config import EngineConfig
from workbench.workload.request import Request, Workload

WIDTH = 4  # requests in flight, the next when one ends
PROMPT = 128


def agreement(requests: int, tokens: int, rounds: int, folder: Path) -> dict[str, Any]:
    """Play ``rounds`` of ours and of theirs in turn, and compare the medians of all of them.

    Prompts are random ids of one length: each client draws its own, and no engine step depends on which they are.
    """
    engine = StockEngine(EngineConfig())
    times: dict[str, dict[str, list[float]]] = {name: {"ttft": [], "gap": []} for name in ("ours", "vllm")}
    try:
        say("agreement: starting vLLM")
        engine.start()
        _ours(engine, WIDTH, 8, seed=0)  # not counted: first steps fault memory in
        for number in range(rounds):
            say(f"agreement: round {number + 1} of {rounds}")
            rows = _ours(engine, requests, tokens, seed=number + 1)
            times["ours"]["ttft"] += [1e3 * (row["first_s"] - row["sent_s"]) for row in rows.tables["requests"]]
            times["ours"]["gap"] += _gaps(rows)
            said = meter_vllm.serve(
                f"http://127.0.0.1:{engine.port}",
                engine.config.model,
                Load(requests, tokens),
                folder / f"agreement{number}",
                input_tokens=PROMPT,
                more=("--max-concurrency", str(WIDTH), "--temperature", "0"),
                env={"OPENAI_API_KEY": engine.key},
            )
            times["vllm"]["ttft"] += said.ttft
            times["vllm"]["gap"] += said.gaps
    finally:
        engine.stop()
    found: dict[str, Any] = {"label": engine.label}
    for name in ("ttft", "gap"):
        ours, theirs = (float(np.median(times[who][name])) for who in ("ours", "vllm"))
        found |= {f"ours_{name}_p50_ms": ours, f"vllm_{name}_p50_ms": theirs}
        found[f"{name}_pct"] = 100 * abs(ours - theirs) / theirs
    return found


def _ours(engine: StockEngine, requests: int, tokens: int, seed: int) -> Rows:
    chance, rows = random.Random(seed), Rows()
    asked = [
        Request(f"{seed}/{i}", "chat", 0, 0.0, tuple(chance.randrange(100, 40_000) for _ in range(PROMPT)), tokens)
        for i in range(requests)
    ]
    engine.play(Workload(tuple(asked), {"chat": WIDTH}), rows).wait()
    return rows


def _gaps(rows: Rows) -> list[float]:
    by_request: dict[str, list[float]] = {}
    for row in rows.tables["tokens"]:
        by_request.setdefault(row["request"], []).append(row["client_s"])
    return [1e3 * float(gap) for at in by_request.values() for gap in np.diff(at)]
