"""What the simulator is measured with: Azure-like mixes, C14's chats and documents, and random small engines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from workbench.engine.probe.wire import KnobChange
from workbench.knobs import POLICIES
from workbench.simulate.job import Ask, SimJob, Swap
from workbench.workload.lengths import LogNormal
from workbench.workload.readers import read_trace
from workbench.workload.request import Request, Workload

REQUESTS = 1000
TRACE = Path(__file__).resolve().parents[3] / "shared" / "data" / "traces" / "azure_llm_2023_code.csv"
# The conversation service of Azure's 2023 traces has these medians and tails, about; the file itself is not here.
_PROMPT, _OUTPUT = LogNormal(median=1020, p99=4000, max=14_000), LogNormal(median=130, p99=700, max=1500)
_RATE = 5.0  # requests a second, of one engine


def azure(seed: int = 1) -> dict[str, Workload]:
    """Mixes of 1,000 requests by name: conversations made from a seed, and the recorded code service if it is here."""
    rng = np.random.default_rng(seed)
    arrivals = np.cumsum(rng.exponential(1 / _RATE, REQUESTS))
    columns = zip(arrivals.tolist(), _PROMPT.sample(rng, REQUESTS), _OUTPUT.sample(rng, REQUESTS), strict=True)
    mixes = {"conversation": _workload(columns, seed)}
    if TRACE.is_file():
        read = read_trace(TRACE, limit=REQUESTS)
        columns = zip(read.times.tolist(), read.prompt_tokens, read.output_tokens, strict=True)
        mixes["code"] = _workload(columns, seed)
    return mixes


def chats_and_documents() -> Workload:
    """C14: 100 chats of 1K, ten a second, and 10 documents of 64K, one a second from the first second on."""
    chats = [Request(f"chat-{i}", "chat", 0, i / 10, (0,) * 1024, 256) for i in range(100)]
    documents = [Request(f"document-{i}", "document", 2, 1.0 + i, (0,) * 65_536, 64) for i in range(10)]
    return Workload(tuple(sorted(chats + documents, key=lambda one: one.arrival_s)))


C14_POLICIES: Mapping[str, Mapping[str, Any]] = {
    "whole prompts": {"policy": "monolithic"},
    "decode first": {"policy": "decode_first", "prefill_every": 4, "budget": 8192},
    "chunked": {"budget": 2048},
    "chunked and classes": {"budget": 2048, "policy": "qos"},
}


def random_job(seed: int, step_time: dict[str, Any]) -> SimJob:
    """A small engine that is short of memory, with everything that may happen to it."""
    rng = np.random.default_rng(seed)
    ahead, loops = bool(rng.integers(2)), ("open", "closed")

    def knobs(revision: int) -> KnobChange:
        policy = POLICIES[rng.integers(len(POLICIES))]
        return KnobChange(
            revision,
            512,
            int(rng.integers(2)) * 64,
            int(rng.integers(2, 9)),
            policy,
            2,
            reserve_full=bool(rng.integers(2)),
        )

    asks = []
    for i in range(int(rng.integers(20, 60))):
        prompt = int(rng.integers(1, 200))
        ids = np.concatenate((np.zeros(prompt // 2), rng.integers(1, 99, prompt - prompt // 2))).astype("<i4")
        asks.append(
            Ask(
                f"r{i}",
                loops[rng.integers(2)],
                int(rng.integers(3)),
                round(float(rng.uniform(0, 2)), 4),
                prompt,
                int(rng.integers(1, 40)),
                ids.tobytes(),
            )
        )
    return SimJob(
        number=0,
        requests=asks,
        step_time=step_time,
        budget=512,
        seqs=8,
        max_model_len=300,
        blocks=int(rng.integers(20, 60)),
        block_size=16,
        knobs=knobs(0),
        changes=[(0.1, knobs(1)), (0.3, knobs(2))],
        prefix_cache=bool(rng.integers(2)),
        ahead=ahead,
        depth=2 if ahead else 1,
        concurrency={"closed": 3},
        swap=Swap(20, 0.002, 0.001) if rng.integers(2) else None,
    )


def _workload(columns: Any, seed: int) -> Workload:
    """Prompts are all alike: without a prefix cache nobody looks at them."""
    requests = tuple(
        Request(f"chat-{i}", "chat", 1, at_s, (0,) * int(prompt), int(output))
        for i, (at_s, prompt, output) in enumerate(columns)
    )
    return Workload(requests, seed=seed)
