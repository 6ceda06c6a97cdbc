"""Runs matrix products for a moment and prints the best rate as JSON; started by :mod:`workbench.telemetry.peak`.

A process of its own, since torch takes seconds and hundreds of MiB that a notebook kernel should not pay.
The CUDA branch is not run on a GPU here.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from typing import Any

_SECONDS = 0.4  # for each shape and type
# Tokens x inputs x outputs. Layers of a small model, and a square that has room for blocking in the caches.
_SHAPES = {"cpu": ((512, 576, 1536), (512, 1024, 1024)), "cuda": ((8192, 8192, 8192),)}
# A CPU without bf16 instructions multiplies float32 several times faster; what it can do is the faster of the two.
_TYPES = {"cpu": ("bfloat16", "float32"), "cuda": ("bfloat16",)}


def rates(device: str, threads: int) -> dict[str, float]:
    """Best FLOP/s of a linear layer by data type."""
    import torch

    torch.set_num_threads(threads)
    best: dict[str, float] = {}
    for name in _TYPES[device]:
        for tokens, inputs, outputs in _SHAPES[device]:
            kind = getattr(torch, name)
            x = torch.randn(tokens, inputs, device=device).to(kind)
            weight = torch.randn(outputs, inputs, device=device).to(kind)
            seconds = _fastest(torch, device, x, weight)
            best[name] = max(best.get(name, 0.0), 2.0 * tokens * inputs * outputs / seconds)
    return best


def _fastest(torch: Any, device: str, x: Any, weight: Any) -> float:
    """Shortest time of one product, s: disturbances only ever make it longer."""
    best, until, runs = float("inf"), time.perf_counter() + _SECONDS, 0
    with torch.inference_mode():
        while runs < 3 or time.perf_counter() < until:  # the first ones load code and warm up
            began = time.perf_counter()
            torch.nn.functional.linear(x, weight)
            if device == "cuda":
                torch.cuda.synchronize()
            best, runs = min(best, time.perf_counter() - began), runs + 1
    return best


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=tuple(_TYPES), default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    chosen = parser.parse_args(argv)
    print(json.dumps(rates(chosen.device, chosen.threads)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
