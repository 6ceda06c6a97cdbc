"""What the probe costs: our live engine against stock vLLM, side by side, loaded in turn.

Both engines run the whole time on the same core; only one has work. Rounds go A B B A ..., each a few chats that
decode together, so that drift of the machine cancels inside a pair. ``PAIRS`` (24) and ``TOKENS`` scale it.
``OURS=stock`` puts stock vLLM in the place of ours, which shows what the method itself makes of no difference (two
engines of one kind differ by about 1 % for as long as they live), and
``OURS=malloc`` stock vLLM with our allocator thresholds.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.parts.stats import answer, paired_ratio, say
from benchmarks.parts.stock import Rows, StockEngine
from workbench.config import EngineConfig
from workbench.engine.live import LiveEngine
from workbench.workload.request import Request, Workload

CHATS = 4


def main() -> None:
    """Run the pairs and print the ratio."""
    pairs, tokens = int(os.environ.get("PAIRS", "24")), int(os.environ.get("TOKENS", "100"))
    config = EngineConfig()
    engines: dict[str, Callable[[EngineConfig], LiveEngine | StockEngine]] = {
        "probe": LiveEngine,
        "stock": StockEngine,
        "malloc": partial(StockEngine, our_malloc=True),
    }
    which = os.environ.get("OURS", "probe")
    ours, stock = engines[which](config), StockEngine(config)
    rates: dict[str, list[float]] = {"ours": [], "stock": []}
    probe_us: list[float] = []
    try:
        say("starting stock vLLM")
        stock.start()
        say(f"starting vLLM ({which})")
        ours.start()
        for name in ("ours", "stock"):  # not counted: first steps fault memory in
            _round(ours if name == "ours" else stock, 30)
        for pair in range(pairs):
            order = ("ours", "stock") if pair % 2 == 0 else ("stock", "ours")
            for name in order:
                rate, rows = _round(ours if name == "ours" else stock, tokens)
                rates[name].append(rate)
                probe_us += [row["probe_us"] for row in rows.tables.get("steps", [])]
            say(f"pair {pair + 1}/{pairs}: ours {rates['ours'][-1]:.1f}, stock {rates['stock'][-1]:.1f} tokens/s")
    finally:
        ours.stop()
        stock.stop()
    ratio, interval = paired_ratio(rates["ours"], rates["stock"])
    answer(
        {
            "bench": "probe",
            "tokens_per_s_ratio": ratio,
            "ratio_ci95": list(interval),
            "ours": which,
            "us_per_step": float(np.median(probe_us)) if probe_us else None,
            "us_per_step_p95": float(np.percentile(probe_us, 95)) if probe_us else None,
            "tokens_per_s": float(np.median(rates["ours"])),
            "stock_tokens_per_s": float(np.median(rates["stock"])),
            "pairs": pairs,
            "steps": len(probe_us),
            "label": ours.label,
        }
    )


def _round(engine: LiveEngine | StockEngine, tokens: int) -> tuple[float, Rows]:
    """Decode with a few chats; output tokens a second between the first and the last arrival."""
    rows = Rows()
    prompt = tuple(range(100, 116))
    requests = [Request(f"chat-{i}", "chat", 0, 0.0, prompt, tokens) for i in range(CHATS)]
    engine.play(Workload(tuple(requests)), rows).wait()
    # The slowest to begin is the moment from which all decode together.
    firsts: dict[str, float] = {}
    for row in rows.tables["tokens"]:
        firsts.setdefault(row["request"], row["client_s"])
    begin = max(firsts.values())
    counted = [row for row in rows.tables["tokens"] if row["client_s"] > begin]
    return sum(row["n"] for row in counted) / (max(row["client_s"] for row in counted) - begin), rows


if __name__ == "__main__":
    main()
