"""One row a request: TTFT, TPOT, schedule lag, worst gap, and whether it met the SLO."""

from __future__ import annotations

import numpy as np
import pandas as pd

from workbench.config import SLO
from workbench.metrics.gaps import Gaps
from workbench.trace import Trace, floats

LONG_PROMPT = 1000  # tokens; a prompt of this length or more counts as long, in tables and charts


def request_metrics(trace: Trace, slo: SLO) -> pd.DataFrame:
    """Return one row a request, in the order of the trace.

    Columns: ``request``, ``class``, ``status``, ``planned_s``, ``prompt_tokens``, ``output_tokens``, ``ttft_s`` (from
    the planned arrival, so that a late client cannot hide queueing), ``ttft_sent_s`` (from the actual send),
    ``tpot_ms`` ((last - first arrival) / (tokens - 1)), ``schedule_lag_s`` (send - planned), ``e2e_s`` (planned arrival
    to the end of the stream), ``gaps`` (how many), ``worst_gap_ms``, ``slo_gap_ms`` (the SLO's percentile of its gaps),
    ``meets_slo`` (it ended well, and both TTFT and ``slo_gap_ms`` are within the SLO; a request without a gap has none
    to fail by). What a request never got to is NaN.
    """
    return per_request(trace, slo, Gaps.of(trace))


def per_request(trace: Trace, slo: SLO, gaps: Gaps) -> pd.DataFrame:
    """Same as :func:`request_metrics`, for gaps that are known already."""
    table = trace.tables["requests"]
    names = table["request"].to_pylist()
    where = {name: i for i, name in enumerate(gaps.names)}
    stream = np.array([where.get(name, -1) for name in names], dtype=np.int64)

    def of_stream(values: np.ndarray, default: float = np.nan) -> np.ndarray:
        """For each request the value of its stream; ``default`` where nothing arrived."""
        return np.append(values.astype(np.float64), default)[stream]  # -1 takes the last

    def known(name: str, else_: np.ndarray) -> np.ndarray:
        """The request's own column, or what the arrivals say where it is null."""
        column = floats(table[name])
        return np.where(np.isnan(column), else_, column)

    planned, sent, done = (floats(table[name]) for name in ("planned_s", "sent_s", "done_s"))
    first, last = known("first_s", of_stream(gaps.first_s)), known("last_s", of_stream(gaps.last_s))
    tokens = known("output_tokens", of_stream(gaps.tokens, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        tpot_ms = np.where(tokens > 1, (last - first) / (tokens - 1) * 1e3, np.nan)
    slo_gap_ms = of_stream(gaps.worst_ms(slo.gap_percentile))
    status = table["status"].to_pylist()
    ok = np.array([value == "ok" for value in status], dtype=bool)
    ttft = first - planned
    return pd.DataFrame(
        {
            "request": names,
            "class": table["class"].to_pylist(),
            "status": status,
            "planned_s": planned,
            "prompt_tokens": floats(table["prompt_tokens"]),
            "output_tokens": tokens.astype(np.int64),
            "ttft_s": ttft,
            "ttft_sent_s": first - sent,
            "tpot_ms": tpot_ms,
            "schedule_lag_s": sent - planned,
            "e2e_s": done - planned,
            "gaps": of_stream(gaps.count, 0.0).astype(np.int64),
            "worst_gap_ms": of_stream(gaps.worst_ms()),
            "slo_gap_ms": slo_gap_ms,
            "meets_slo": ok & (ttft * 1e3 <= slo.ttft_ms) & ~(slo_gap_ms > slo.gap_ms),
        }
    )
