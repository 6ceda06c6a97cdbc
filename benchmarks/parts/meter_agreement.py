"""Our client and ``vllm bench serve`` on one live engine, the same load in turn: do their medians agree?

The engine has our probe, so that its own steps stand beside both: where the engine itself ran slower while one of them
listened, their gaps differ and neither is wrong.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.parts import meter_vllm
from benchmarks.parts.meter_rivals import Load, tokenizer
from benchmarks.parts.stats import say
from benchmarks.parts.stock import Rows, StockEngine
from workbench.config import EngineConfig
from workbench.workload.english import sentences
from workbench.workload.prompts import load_tokenizer
from workbench.workload.request import Request, Workload

WIDTH = 4  # requests in flight, the next when one ends
PROMPT = 128  # tokens, about: a text that is cut there may be one token longer when it is read again

Times = Mapping[str, Sequence[float]]  # ms, of each request or each gap
Client = Callable[[StockEngine, list[str], int, Path], Times]


def agreement(requests: int, tokens: int, rounds: int, folder: Path) -> dict[str, Any]:
    """Play the same prompts through ours and theirs, and compare the medians of all rounds.

    Who begins alternates, since machines drift. The prefix cache is off: the second would find the first one's.
    """
    engine = StockEngine(EngineConfig(enable_prefix_caching=False), steps=True)
    clients: dict[str, Client] = {"ours": _ours, "vllm": _theirs}
    times: dict[str, list[Times]] = {name: [] for name in clients}
    try:
        say("agreement: starting vLLM")
        engine.start()
        _ours(engine, _prompts(WIDTH, 0), 8, folder)  # not counted: first steps fault memory in
        for number in range(rounds):
            say(f"agreement: round {number + 1} of {rounds}")
            prompts = _prompts(requests, number + 1)
            for name in list(clients)[:: -1 if number % 2 else 1]:
                times[name].append(clients[name](engine, prompts, tokens, folder / f"agreement-{name}{number}"))
    finally:
        engine.stop()
    found: dict[str, Any] = {"label": engine.label, "rounds": rounds}
    medians = {
        name: {
            what: float(np.median([ms for one in many for ms in one[what]])) for what in ("ttft", "gap", "engine_gap")
        }
        for name, many in times.items()
    }
    for what in ("ttft", "gap", "engine_gap"):
        ours, theirs = medians["ours"][what], medians["vllm"][what]
        found |= {f"ours_{what}_p50_ms": ours, f"vllm_{what}_p50_ms": theirs}
        found[f"{what}_pct"] = 100 * abs(ours - theirs) / theirs
    for name, of in medians.items():
        found[f"{name}_gap_off_engine_pct"] = 100 * (of["gap"] / of["engine_gap"] - 1)
    found["gap_p50_ms_by_round"] = {
        name: [[float(np.median(one["gap"])), float(np.median(one["engine_gap"]))] for one in many]
        for name, many in times.items()
    }
    return found


def _prompts(n: int, seed: int) -> list[str]:
    """Texts of about :data:`PROMPT` tokens; no step depends on what they say."""
    known, chance = load_tokenizer(Path(tokenizer())), np.random.default_rng(seed)
    texts = ("".join(sentences(chance, PROMPT // 6)) for _ in range(n))
    return [known.decode(known.encode(text).ids[:PROMPT]) for text in texts]


def _ours(engine: StockEngine, prompts: list[str], tokens: int, _folder: Path) -> Times:
    known, rows = load_tokenizer(Path(tokenizer())), Rows()
    asked = [
        Request(str(number), "chat", 0, 0.0, tuple(known.encode(prompt).ids), tokens)
        for number, prompt in enumerate(prompts)
    ]
    engine.play(Workload(tuple(asked), {"chat": WIDTH}), rows).wait()
    arrived: dict[str, list[float]] = {}
    for row in rows.tables["tokens"]:
        arrived.setdefault(row["request"], []).append(row["client_s"])
    ttft = [1e3 * (row["first_s"] - row["sent_s"]) for row in rows.tables["requests"]]
    return {"ttft": ttft, "gap": _gaps(arrived), "engine_gap": _engine_gaps(rows)}


def _theirs(engine: StockEngine, prompts: list[str], tokens: int, folder: Path) -> Times:
    folder.mkdir(parents=True)
    file, rows = folder / "prompts.jsonl", Rows()
    file.write_text("".join(json.dumps({"prompt": prompt}) + "\n" for prompt in prompts))
    data = ("--dataset-name", "custom", "--dataset-path", str(file), "--custom-output-len", str(tokens))
    with engine.recording(rows, time.monotonic()):
        said = meter_vllm.serve(
            f"http://127.0.0.1:{engine.port}",
            engine.config.model,
            Load(len(prompts), tokens),
            folder,
            input_tokens=PROMPT,
            more=(
                *data,
                "--skip-chat-template",
                "--disable-shuffle",
                "--max-concurrency",
                str(WIDTH),
                "--temperature",
                "0",
            ),
            env={"OPENAI_API_KEY": engine.key},
        )
    return {"ttft": said.ttft, "gap": said.gaps, "engine_gap": _engine_gaps(rows)}


def _engine_gaps(rows: Rows) -> list[float]:
    """Between the ends of the steps that made a request's tokens."""
    ends = {row["step"]: row["end_s"] for row in rows.tables["steps"]}
    made: dict[str, list[float]] = {}
    for row in rows.tables["batch"]:
        if row["emitted"]:
            made.setdefault(row["request"], []).append(ends[row["step"]])
    return _gaps(made)


def _gaps(at: dict[str, list[float]]) -> list[float]:
    return [1e3 * float(gap) for times in at.values() for gap in np.diff(times)]
