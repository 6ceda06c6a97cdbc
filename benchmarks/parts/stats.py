"""Paired ratios with an interval, and the one line that a benchmark prints."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats


def paired_ratio(a: Sequence[float], b: Sequence[float]) -> tuple[float, tuple[float, float]]:
    """Geometric mean of a[i] / b[i], and its 95 % interval by Student's t on the logarithms."""
    logs = np.log(np.asarray(a) / np.asarray(b))
    mean, half = float(logs.mean()), float(stats.t.ppf(0.975, len(logs) - 1) * stats.sem(logs))
    return float(np.exp(mean)), (float(np.exp(mean - half)), float(np.exp(mean + half)))


def say(text: str) -> None:
    """Progress on stderr, with the time of day."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def answer(figures: dict[str, Any]) -> None:
    """The one JSON line on stdout; floats to five significant digits."""
    print(json.dumps(_short(figures)))


def _short(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: _short(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_short(item) for item in value]
    return value
