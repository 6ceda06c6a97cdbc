"""The figures of a trial's run, flat and quick to find: neither stalls nor their causes, which take long."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from workbench.config import SLO
from workbench.metrics.classes import duration, rate, spread
from workbench.metrics.gaps import Gaps
from workbench.metrics.requests import LONG_PROMPT, per_request
from workbench.trace import Trace


def figures_of(trace: Trace, slo: SLO) -> dict[str, float]:
    """The figures that :meth:`workbench.tune.goal.Goal.judge` names."""
    gaps = Gaps.of(trace)
    requests = per_request(trace, slo, gaps)
    seconds = duration(trace, gaps)
    ok, ttft = requests["status"] == "ok", requests["ttft_s"]
    tokens, prompts = float(gaps.tokens.sum()), float(requests.loc[ttft.notna(), "prompt_tokens"].sum())
    longest = ttft[requests["prompt_tokens"] >= LONG_PROMPT].max()
    found: dict[str, float | None] = {
        "goodput_per_s": rate(requests["meets_slo"].sum(), seconds),
        "requests_per_s": rate(ok.sum(), seconds),
        "output_tokens_per_s": rate(tokens, seconds),
        "prompt_tokens_per_s": rate(prompts, seconds),
        "tokens_per_s": rate(tokens + prompts, seconds),
        "long_ttft_s": float(longest),
        "duration_s": seconds,
        "failed": float(1 - ok.mean()) if len(ok) else 1.0,
        "slack": _slack(requests, slo),
        **_times(gaps.gap_ms, ttft, ""),
    }
    of_gap = gaps.of_class[gaps.code]
    for place, name in enumerate(gaps.classes):
        found |= _times(gaps.gap_ms[of_gap == place], ttft[requests["class"] == name], f".{name}")
    return {name: float(value) for name, value in found.items() if value is not None and not math.isnan(value)}


def _times(gap_ms: np.ndarray, ttft_s: pd.Series, of: str) -> dict[str, float | None]:
    figures = spread(gap_ms, "gap", "ms") | spread(ttft_s.to_numpy(), "ttft", "s")
    return {f"{name}{of}": value for name, value in figures.items() if not name.endswith("_count")}


def _slack(requests: pd.DataFrame, slo: SLO) -> float | None:
    if requests.empty:
        return None
    late = requests["ttft_s"].fillna(np.inf).to_numpy() * 1e3 / slo.ttft_ms
    stalled = requests["slo_gap_ms"].fillna(0.0).to_numpy() / slo.gap_ms
    return float(np.clip(1 - np.maximum(late, stalled), -1, 1).mean())
