"""Copies pinned host memory to a CUDA device and back, and prints the best rates as JSON; a process of its own.

What KV offload can reach between host and device. Not run on a GPU here; a machine without one answers the reason.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

_BYTES = 256 << 20  # large enough that starting a copy does not count
_RUNS = 8


def rates() -> dict[str, float]:
    """Best bytes/s to the device and to the host.

    Raises:
        RuntimeError: there is no CUDA device.
    """
    import torch

    if not torch.cuda.is_available():
        raise RuntimeError("torch finds no CUDA device")
    host = torch.empty(_BYTES, dtype=torch.uint8, pin_memory=True)
    device = torch.empty(_BYTES, dtype=torch.uint8, device="cuda")
    return {"to_device": _best(torch, device, host), "to_host": _best(torch, host, device)}


def _best(torch: Any, target: Any, source: Any) -> float:
    seconds = []
    for _ in range(_RUNS):
        torch.cuda.synchronize()
        began = time.perf_counter()
        target.copy_(source, non_blocking=True)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return _BYTES / min(seconds)


def main() -> None:
    """Measure and print, or say why not."""
    try:
        print(json.dumps(rates()), flush=True)  # noqa: T201
    except (RuntimeError, ImportError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
