"""Result files of AIPerf 0.13: ``profile_export.jsonl``, one record a request.

It holds when a request was sent and ended, its TTFT, the time between chunks of output (``inter_chunk_latency``) and
counts. Requests of the warm-up are left out, as AIPerf leaves them out of its figures.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from workbench.exchange.rows import Imported, Place, Results, plausible

_TO_S = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0}
_LATEST_NS = 2**63 - 1
_MISSING = (
    "the planned arrival of a request: TTFT counts from its send",
    "how many tokens each chunk brought",
)


def is_aiperf(record: object) -> bool:
    """Whether a line of the file looks like one of its records."""
    if not isinstance(record, dict) or not isinstance(record.get("metadata"), dict):
        return False
    return "request_start_ns" in record["metadata"] and "metrics" in record


def read_aiperf(records: Iterable[tuple[int, object]], place: Place) -> Results:
    """Read one.

    Args:
        records: line numbers, and what stands there.
        place: where the file stands.

    Raises:
        TraceFileError: a record that cannot be read, with its line.
    """
    requests: list[Imported] = []
    warm_up, zero_ns = 0, None  # a float of seconds since 1970 has no nanoseconds: they count from the first request
    for line, record in records:
        here = place.at(f"line {line}")
        found = here.mapping(record)
        metadata = here.at("metadata").mapping(found.get("metadata"))
        if metadata.get("benchmark_phase") == "warmup":
            warm_up += 1
            continue
        begun = here.at("request_start_ns").count(metadata.get("request_start_ns"), most=_LATEST_NS)
        if begun is None:
            raise here.at("request_start_ns").wrong("nothing", "a time")
        zero_ns = begun if zero_ns is None else zero_ns
        requests.append(_request(f"request-{len(requests)}", found, metadata, zero_ns, here))
    if not requests:
        raise place.wrong("no request", "records of requests that were profiled")
    plausible(requests, place)
    return Results("AIPerf", requests, {"warm_up_requests_left_out": warm_up}, _MISSING)


def _request(name: str, record: Mapping[str, Any], metadata: Mapping[str, Any], zero_ns: int, place: Place) -> Imported:
    metrics = place.at("metrics").mapping(record.get("metrics") or {})

    def number(key: str) -> float | None:
        """A metric that is a length of time, in seconds."""
        found = metrics.get(key)
        return None if found is None else _in_seconds(found, place.at(key))

    def count(key: str) -> int | None:
        found = metrics.get(key)
        return None if found is None else place.at(key).count(place.at(key).mapping(found).get("value"))

    def time(key: str) -> float | None:
        at = place.at(key).count(metadata.get(key), most=_LATEST_NS)
        return None if at is None else (at - zero_ns) * 1e-9

    sent, done = time("request_start_ns") or 0.0, time("request_end_ns")
    ttft, gaps = number("time_to_first_token"), _gaps(metrics, place)
    latency = number("request_latency")
    error = record.get("error")
    said = place.at("error").mapping(error) if error is not None else {}
    cancelled = metadata.get("was_cancelled") is True
    first = None if ttft is None else sent + ttft
    return Imported(
        name=name,
        sent_s=sent,
        first_s=first,
        gaps_s=gaps if first is not None else None,
        # To the last output; with its gaps the sum says the same.
        last_s=sent + latency if first is not None and gaps is None and latency is not None else None,
        done_s=done,
        prompt_tokens=count("input_sequence_length"),
        output_tokens=count("output_sequence_length"),
        status="cancelled" if cancelled else "error" if error is not None else "ok",
        error=place.text(said.get("message") or said.get("type")) if error is not None else None,
    )


def _gaps(metrics: Mapping[str, Any], place: Place) -> list[float] | None:
    found = metrics.get("inter_chunk_latency")
    if found is None:
        return None
    here = place.at("inter_chunk_latency")
    metric = here.mapping(found)
    scale = _scale(metric, here)
    return [here.span(gap) * scale for gap in here.rows(metric.get("value"))]


def _in_seconds(found: object, place: Place) -> float:
    metric = place.mapping(found)
    return place.span(metric.get("value")) * _scale(metric, place)


def _scale(metric: Mapping[str, Any], place: Place) -> float:
    unit = metric.get("unit")
    if not isinstance(unit, str) or unit not in _TO_S:
        raise place.at("unit").wrong(unit, f"one of {', '.join(_TO_S)}")
    return _TO_S[unit]
