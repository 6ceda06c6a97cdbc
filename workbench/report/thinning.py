"""What is left out of the data in a page when a run has more rows than a page should hold.

Every stall is kept, the largest values of each stretch of time are, and of the gaps those at evenly spaced ranks, each
with its rank: percentiles of all gaps can be worked out from the rows that are left.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from workbench.ui.charts.data import decimate

PERCENTILES = (0, 50, 90, 99, 100)
RANK = "rank"
# Table: its time, and the columns whose largest values are kept.
_PEAKS = {
    "stalls": ("at_s", ["gap_ms"]),
    "steps": ("start_s", ["activation_mib", "prefill_tokens", "decode_tokens", "kv_use", "waiting"]),
    "requests": ("planned_s", ["ttft_s", "worst_gap_ms"]),
    "phases": ("begin_s", ["length"]),
    "preemptions": ("at_s", ["lost_tokens"]),
}


def thin(name: str, frame: pd.DataFrame, limit: int, gap_ms: float) -> pd.DataFrame:
    """At most about ``limit`` rows of a table of the page, in their order; one that is small enough stays as it is.

    Args:
        name: of the table.
        frame: all rows.
        limit: of rows.
        gap_ms: a gap above it is a stall.

    Returns:
        Of gaps, with a further column ``rank``: the place among all gaps by length, from 0.
    """
    if len(frame) <= limit:
        return frame
    if name == "gaps":
        return _gaps(frame, limit, gap_ms)
    time, peaks = _PEAKS.get(name, ("", ()))
    columns = [column for column in peaks if column in frame and frame[column].notna().any()]
    if name == "phases":
        frame = frame.assign(length=frame["end_s"] - frame["begin_s"])
        columns = ["length"]
    if time not in frame or not columns or frame[time].notna().sum() == 0:
        return frame.iloc[:limit].drop(columns="length", errors="ignore")
    kept = decimate(frame.sort_values(time, kind="stable"), time, columns, limit)
    return kept.sort_index().drop(columns="length", errors="ignore")


def exact_ranks(count: int, percentiles: Sequence[float] = PERCENTILES) -> set[int]:
    """The ranks between which linear interpolation finds these percentiles of ``count`` values."""
    places = [(count - 1) * share / 100 for share in percentiles]
    return {rank for place in places for rank in (int(np.floor(place)), int(np.ceil(place)))}


def _gaps(frame: pd.DataFrame, limit: int, gap_ms: float) -> pd.DataFrame:
    frame = frame.reset_index(drop=True)
    order = np.argsort(frame["gap_ms"].to_numpy(), kind="stable")
    count = len(order)
    calm = int((frame["gap_ms"] <= gap_ms).sum())  # the rank of the shortest stall
    ranks = exact_ranks(count) | {rank for rank in (calm - 1, calm) if 0 <= rank < count}
    room = limit // 3
    if count - calm <= room:
        ranks |= set(range(calm, count))
    else:
        ranks |= set(range(count - room, count))
    ranks |= set(np.linspace(0, count - 1, room).astype(int).tolist())
    rank_of = np.empty(count, dtype=np.int64)
    rank_of[order] = np.arange(count)
    frame = frame.assign(**{RANK: rank_of})
    peaks = decimate(frame, "at_s", ["gap_ms"], room)
    kept = np.unique(np.concatenate([order[sorted(ranks)], peaks.index.to_numpy()]))
    return frame.iloc[kept]
