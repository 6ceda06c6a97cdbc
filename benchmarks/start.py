"""How long an engine takes to start: ours against stock vLLM with the same flags, one after the other.

A pair is one start of each, A B then B A. Ours has the probe, a health check by real tokens, and an entry point that
imports less (``workbench/engine/probe/serve.py``); stock is ``python -m vllm.entrypoints.openai.api_server`` until
its first answer. ``PAIRS`` (4) scales it; one start is 40 s on two cores.
"""

from __future__ import annotations

import os
import time

import numpy as np

from benchmarks.parts.stats import answer, paired_ratio, say
from benchmarks.parts.stock import StockEngine
from workbench.config import EngineConfig
from workbench.engine.live import LiveEngine


def main() -> None:
    """Start each once unseen, then the pairs; print seconds and their ratio."""
    pairs = int(os.environ.get("PAIRS", "4"))
    seconds: dict[str, list[float]] = {"ours": [], "stock": []}
    load_before = os.getloadavg()[0]
    say("not counted: the model, and files into memory")
    _started("stock")
    for pair in range(pairs):
        for name in ("ours", "stock") if pair % 2 == 0 else ("stock", "ours"):
            seconds[name].append(_started(name))
        say(f"pair {pair + 1}/{pairs}: ours {seconds['ours'][-1]:.1f} s, stock {seconds['stock'][-1]:.1f} s")
    ratio, interval = paired_ratio(seconds["ours"], seconds["stock"])
    answer(
        {
            "bench": "start",
            "pairs": pairs,
            "ours_s": float(np.median(seconds["ours"])),
            "stock_s": float(np.median(seconds["stock"])),
            "ours_over_stock": ratio,
            "interval95": interval,
            "load_1min_before": load_before,
        }
    )


def _started(name: str) -> float:
    """Seconds from nothing to an engine that answers; it is stopped then."""
    engine = LiveEngine(EngineConfig()) if name == "ours" else StockEngine(EngineConfig())
    begun = time.monotonic()
    try:
        engine.start()
        return time.monotonic() - begun
    finally:
        engine.stop()


if __name__ == "__main__":
    main()
