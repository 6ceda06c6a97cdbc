"""A server's ``/metrics``: from the text of a page to what it says of requests, tokens, the KV pool and latencies.

The text format is that of Prometheus (version 0.0.4). Counters become what was counted since the first page; histograms
the quantiles of what was counted between two pages, with the bucket that each lies in: no more is known of it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

QUANTILES = (0.5, 0.9, 0.99)
_MOST = 2**63 - 1024  # what a column of counts holds, and a float can be
MOST_SAMPLES = 200_000  # of one page; beyond it is no server's

_SAMPLE = re.compile(
    r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>.*)\})?[ \t]+(?P<value>[^ \t]+)(?:[ \t]+-?\d+)?[ \t]*"
)
_LABEL = re.compile(r'\s*(?P<name>[a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"(?P<value>(?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPED = re.compile(r"\\(.)")

# Column of the table ``server``: the metrics that hold it, the first that is there; summed over labels (data-parallel
# ranks). vLLM 0.32 (vllm/v1/metrics/loggers.py), SGLang 0.5.23 (sglang/srt/observability).
_GAUGES: dict[str, tuple[str, ...]] = {
    "running": ("vllm:num_requests_running", "sglang:num_running_reqs"),
    "waiting": ("vllm:num_requests_waiting", "sglang:num_queue_reqs"),
}
_SHARES: dict[str, tuple[str, ...]] = {
    "kv_use": ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc", "sglang:token_usage")
}  # averaged, 0..1
_COUNTERS: dict[str, tuple[str, ...]] = {
    "prompt_tokens": ("vllm:prompt_tokens_total", "sglang:prompt_tokens_total"),
    "output_tokens": ("vllm:generation_tokens_total", "sglang:generation_tokens_total"),
    "cached_tokens": ("vllm:prefix_cache_hits_total", "sglang:cached_tokens_total"),
    "preemptions": ("vllm:num_preemptions_total", "sglang:num_retracted_requests_total"),
    "requests": ("vllm:request_success_total", "sglang:num_requests_total"),
}
HISTOGRAMS: dict[str, tuple[str, ...]] = {
    "ttft_s": ("vllm:time_to_first_token_seconds", "sglang:time_to_first_token_seconds"),
    "gap_s": (
        "vllm:inter_token_latency_seconds",
        "vllm:time_per_output_token_seconds",
        "sglang:inter_token_latency_seconds",
    ),
    "e2e_s": ("vllm:e2e_request_latency_seconds", "sglang:e2e_request_latency_seconds"),
    "queue_s": ("vllm:request_queue_time_seconds", "sglang:queue_time_seconds"),
}
_RESIDENT = "process_resident_memory_bytes"


@dataclass(frozen=True)
class Page:
    """One reading of ``/metrics``.

    Attributes:
        samples: (name, labels without ``le``) and ``le`` (None but for a bucket), to the value.
    """

    samples: Mapping[tuple[str, str, str | None], float]

    @classmethod
    def parse(cls, text: str) -> Page:
        """Read a page; lines that are no samples are passed over, and so is what is not a number."""
        found: dict[tuple[str, str, str | None], float] = {}
        for line in text.splitlines():
            if len(found) >= MOST_SAMPLES:
                break
            match = None if line.startswith("#") else _SAMPLE.fullmatch(line.strip())
            if match is None:
                continue
            try:
                value = float(match["value"])
            except ValueError:
                continue
            labels = dict(_labels(match["labels"] or ""))
            bound = labels.pop("le", None)
            found[match["name"], repr(sorted(labels.items())), bound] = value
        return cls(found)

    @property
    def knows(self) -> bool:
        """Whether it is the page of a server that we know."""
        return any(name.startswith(("vllm:", "sglang:")) for name, _, _ in self.samples)

    def values(self, names: tuple[str, ...]) -> list[float]:
        """The finite values of the first of these metrics that is there, one for each set of labels."""
        for name in names:
            found = [value for (one, _, _), value in self.samples.items() if one == name and math.isfinite(value)]
            if found:
                return found
        return []

    def buckets(self, names: tuple[str, ...]) -> dict[float, float]:
        """The cumulated counts of the first of these histograms that is there, by upper bound."""
        for name in names:
            found: dict[float, float] = {}
            for (one, _, bound), value in self.samples.items():
                counts = one == f"{name}_bucket" and bound is not None and math.isfinite(value)
                if counts and (upper := _number(bound or "")) is not None:
                    found[upper] = found.get(upper, 0.0) + value
            if found:
                return found
        return {}

    @property
    def resident_bytes(self) -> int | None:
        """Resident memory of the process that answered, which is the API server's; none if it does not say."""
        found = self.values((_RESIDENT,))
        return int(found[0]) if found and abs(found[0]) <= _MOST else None


def server_row(page: Page, first: Page) -> dict[str, Any]:
    """A row of the trace's table ``server``, without its time; what the page does not say is left out.

    Args:
        page: what was read.
        first: the first page of the run: counters count from it. One that is lower now was set back by a restart of
            the server, and says nothing.
    """
    row: dict[str, Any] = {}
    for column, names in _GAUGES.items():
        if values := page.values(names):
            row[column] = sum(values)
    for column, names in _SHARES.items():
        if values := page.values(names):
            row[column] = sum(values) / len(values)
    for column, metrics in _COUNTERS.items():
        now, before = page.values(metrics), first.values(metrics)
        if now and sum(now) >= sum(before):
            row[column] = sum(now) - sum(before)
    held = {name: value for name, value in row.items() if abs(value) <= _MOST}  # not so a sum beyond all floats
    return {name: value if name in _SHARES else round(value) for name, value in held.items()}


def quantiles(now: Page, first: Page) -> dict[str, dict[str, Any]]:
    """What the server's own histograms counted between two pages.

    Returns:
        For each of :data:`HISTOGRAMS` that is there: ``count``, and ``p50``, ``p90``, ``p99`` with ``value``
        (interpolated within its bucket, as Prometheus' ``histogram_quantile`` does), and ``low`` and ``high``, the
        bucket's bounds: the true one lies between them. ``value`` and ``high`` are None in the last, open bucket.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, metrics in HISTOGRAMS.items():
        after, before = now.buckets(metrics), first.buckets(metrics)
        counts = {bound: count - before.get(bound, 0.0) for bound, count in after.items()}
        total = counts.get(math.inf, 0.0)
        if not 1 <= total <= _MOST or not all(0 <= count <= _MOST for count in counts.values()):
            continue
        found[name] = {"count": round(total)}
        for share in QUANTILES:
            found[name][f"p{share * 100:g}"] = _quantile(counts, share * total)
    return found


def _quantile(counts: Mapping[float, float], rank: float) -> dict[str, float | None]:
    low, below = 0.0, 0.0
    for bound in sorted(counts):
        if counts[bound] >= rank:
            if math.isinf(bound):
                return {"value": None, "low": low, "high": None}
            inside = counts[bound] - below
            at = low + (bound - low) * ((rank - below) / inside if inside else 1.0)
            return {"value": at, "low": low, "high": bound}
        low, below = bound, counts[bound]
    return {"value": None, "low": low, "high": None}


def _labels(text: str) -> Iterator[tuple[str, str]]:
    at = 0
    while at < len(text) and (match := _LABEL.match(text, at)):
        yield match["name"], _ESCAPED.sub(lambda m: "\n" if m[1] == "n" else m[1], match["value"])
        at = match.end()


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return None if math.isnan(value) else value
