"""What a server said of itself on ``/metrics``, as rows: rates from counters, and quantiles with their buckets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from workbench.i18n import marked, translate

PROMPT, OUTPUT = marked("prompt"), marked("output")
COUNTERS: Mapping[str, str] = {PROMPT: "prompt_tokens", OUTPUT: "output_tokens"}  # series → column of table ``server``
TTFT, GAP, QUEUE, WHOLE = marked("TTFT"), marked("gap"), marked("time in queue"), marked("whole request")
HISTOGRAMS: Mapping[str, str] = {"ttft_s": TTFT, "gap_s": GAP, "queue_s": QUEUE, "e2e_s": WHOLE}
SHARES: Mapping[str, float] = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


def rates(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, float]:
    """Tokens a second of each series between two readings.

    A counter that is missing in one of them, or that went back (the server was started again), says nothing.

    Args:
        before: a row of the table ``server``.
        after: a later one.
    """
    seconds = after["t_s"] - before["t_s"]
    found = {}
    for series, column in COUNTERS.items():
        first, last = before.get(column), after.get(column)
        if seconds > 0 and first is not None and last is not None and last >= first:
            found[series] = (last - first) / seconds
    return found


def lost(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> int:
    """How many requests were preempted between two readings; 0 where it is not known."""
    first, last = (before or {}).get("preemptions"), after.get("preemptions")
    return max(0, last - first) if first is not None and last is not None else 0


def row_name(what: str, share: str) -> str:
    """What stands beside a quantile: "TTFT P99"."""
    return f"{translate(what)} {share.upper()}"


def quantile_rows(histograms: Mapping[str, Any] | None, of: Iterable[str] = HISTOGRAMS) -> list[dict[str, Any]]:
    """Rows of a run's histograms, in the order in which they are drawn.

    Args:
        histograms: as :func:`workbench.telemetry.metrics_page.quantiles` gives them.
        of: which.

    Returns:
        ``row`` (its name), ``what``, ``count``, ``value`` (s, interpolated), ``low`` and ``high`` (s, the bounds of its
        bucket: the true one lies between them), ``open`` (whether it has no upper one; value and high are null).
    """
    rows = []
    for name in of:
        one = (histograms or {}).get(name)
        for share in SHARES:
            known = one.get(share) if isinstance(one, Mapping) else None
            if isinstance(one, Mapping) and isinstance(known, Mapping):
                high = known.get("high")
                what = HISTOGRAMS[name]
                rows.append(
                    {
                        "row": row_name(what, share),
                        "what": what,
                        "count": one.get("count"),
                        "value": known.get("value"),
                        "low": known["low"],
                        "high": high,
                        "open": high is None,
                    }
                )
    return rows


def ends(rows: Iterable[Mapping[str, Any]]) -> list[float]:
    """All that an axis in seconds must have room for, without zeros; an open bucket has room beyond its lower bound."""
    found = []
    for row in rows:
        beyond = 2 * row["low"] if row["open"] else row["high"]
        least = row["low"] or beyond / 2  # a bucket from 0 on has a width, too
        found += [value for value in (least, row["value"], beyond) if value and math.isfinite(value)]
    return found
