"""A trace as a Chrome trace event file: requests, steps, memory and knobs on one time axis.

Format: "Trace Event Format" of the Chromium project, JSON object form, which ui.perfetto.dev and chrome://tracing open.
Times are microseconds with three digits behind the point: nanoseconds. What the trace does not hold is not in the file.
"""

from __future__ import annotations

import gzip
import heapq
import json
import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from workbench.errors import StoreError
from workbench.origin import origin_words
from workbench.trace import Trace
from workbench.units import MIB
from workbench.whole_file import draft_of

REQUESTS, ENGINE, COUNTERS = 1, 2, 3  # process ids: groups of tracks
_STEPS, _KNOBS = 1, 2  # threads of the engine
_TABLE_ROWS = 10_000  # read at a time
_LATEST_S = 1e9  # thirty years: of a time beyond it microseconds are no number that a viewer takes

Event = dict[str, Any]


def write_perfetto(trace: Trace, path: Path | str) -> Path:
    """Write a trace event file; with a name that ends in ``.gz`` it is compressed.

    Raises:
        StoreError: it cannot be written.
    """
    path = Path(path)
    compressed = path.suffix == ".gz"
    try:
        with (
            draft_of(path, mode=0o644) as draft,
            gzip.open(draft, "wt", encoding="utf-8") if compressed else draft.open("w", encoding="utf-8") as file,
        ):
            _write(file, trace)
    except OSError as error:
        raise StoreError(f"cannot write {path}: {error.strerror or error}; choose another file") from None
    return path


def _write(file: IO[str], trace: Trace) -> None:
    meta = trace.meta
    about = {"run": meta.get("id"), "scenario": meta.get("scenario"), "origin": origin_words(meta), "from": "workbench"}
    file.write(f'{{"displayTimeUnit":"ms","otherData":{_json(about)},"traceEvents":[\n')
    first = True
    for event in events(trace):
        file.write("" if first else ",\n")
        file.write(_json(event))
        first = False
    file.write("\n]}\n")


def events(trace: Trace) -> Iterator[Event]:
    """The events of a trace: names of the tracks first, then each group in order of time.

    Requests are complete events (``X``) on as few rows as do not overlap, from the planned arrival to the end of the
    stream, with their waiting, prefill and decode inside; token arrivals are not drawn one by one. Steps are complete
    events of the engine; memory, KV pool and queue are counters (``C``); knob changes, preemptions and errors are
    instants (``i``).
    """
    lanes, requests = _requests(trace)
    yield from _names(trace, lanes)
    yield from requests
    yield from _steps(trace)
    yield from _counters(trace)
    yield from _knobs(trace)


def us(seconds: float) -> float:
    """Microseconds, to a nanosecond."""
    return round(seconds * 1e6, 3)


def _names(trace: Trace, lanes: int) -> Iterator[Event]:
    groups = {
        REQUESTS: "Requests (client)",
        ENGINE: f"Engine, {origin_words(trace.meta)}",
        COUNTERS: "Memory and queue",
    }
    for pid, name in groups.items():
        yield {"ph": "M", "pid": pid, "tid": 0, "ts": 0, "name": "process_name", "args": {"name": name}}
        yield {"ph": "M", "pid": pid, "tid": 0, "ts": 0, "name": "process_sort_index", "args": {"sort_index": pid}}
    for lane in range(1, lanes + 1):
        yield _thread(REQUESTS, lane, f"stream {lane}")
    yield _thread(ENGINE, _STEPS, "steps")
    yield _thread(ENGINE, _KNOBS, "knobs")


def _thread(pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "pid": pid, "tid": tid, "ts": 0, "name": "thread_name", "args": {"name": name}}


def _requests(trace: Trace) -> tuple[int, list[Event]]:
    """The number of rows and their events."""
    found = []
    for row in _rows(trace, "requests"):
        times = [row[name] for name in ("planned_s", "sent_s", "first_s", "last_s", "done_s") if _known(row[name])]
        if times:
            found.append((min(times), max(times), row))
    found.sort(key=lambda one: one[0])
    free: list[tuple[float, int]] = []  # when each row's last request ended, and the row
    lanes, made = 0, []
    for begin, end, row in found:
        if free and free[0][0] <= begin:
            _, lane = heapq.heappop(free)
        else:
            lanes += 1
            lane = lanes
        heapq.heappush(free, (end, lane))
        made += _request(row, begin, end, lane)
    return lanes, made


def _request(row: Mapping[str, Any], begin: float, end: float, lane: int) -> list[Event]:
    told = ("class", "priority", "prompt_tokens", "output_tokens", "cached_tokens", "status", "finish_reason", "error")
    args = {name: row[name] for name in told if row[name] is not None}
    made = [_span(str(row["request"]), str(row["class"] or "request"), begin, end, REQUESTS, lane, args)]
    parts = (
        ("waits to be sent", "planned_s", "sent_s"),
        ("to first token", "sent_s", "first_s"),
        ("decode", "first_s", "last_s"),
    )
    for name, since, until in parts:
        if _known(row[since]) and _known(row[until]) and row[until] >= row[since]:
            made.append(_span(name, "phase", row[since], row[until], REQUESTS, lane, {"request": row["request"]}))
    if row["error"]:
        made.append(_instant(f"error: {row['error']}", end, REQUESTS, lane, {"request": row["request"]}))
    return made


def _steps(trace: Trace) -> Iterator[Event]:
    told = ("step", "prefill_tokens", "decode_tokens", "prefills", "decodes", "running", "waiting", "revision",
            "schedule_us", "probe_us", "predicted_ms", "activation_bytes")  # fmt: skip
    for row in _rows(trace, "steps"):
        begin = row["start_s"] if _known(row["start_s"]) else row["scheduled_s"]
        if not _known(begin) or not _known(row["end_s"]):
            continue
        kind = (
            "mixed"
            if row["prefill_tokens"] and row["decode_tokens"]
            else "prefill"
            if row["prefill_tokens"]
            else "decode"
        )
        args = {name: row[name] for name in told if row[name] is not None}
        yield _span(kind, "step", begin, max(begin, row["end_s"]), ENGINE, _STEPS, args)
        for name in row["preempted"] or ():
            yield _instant(f"preempted {name}", begin, ENGINE, _STEPS, {"request": name})


def _counters(trace: Trace) -> Iterator[Event]:
    for row in _rows(trace, "memory"):
        if row["bytes"] is not None and _known(row["t_s"]):
            yield _counter(f"memory: {row['source']}", row["t_s"], {"MiB": row["bytes"] / MIB})
    for row in _rows(trace, "steps"):
        at = row["end_s"]
        if not _known(at):
            continue
        yield _counter("tokens a step", at, _given(row, prefill="prefill_tokens", decode="decode_tokens"))
        yield _counter("requests", at, _given(row, running="running", waiting="waiting"))
        if _known(row["kv_use"]):
            yield _counter("KV pool in use", at, {"%": 100 * row["kv_use"]})
        if row["activation_bytes"] is not None:
            yield _counter("activation of a step", at, {"MiB": row["activation_bytes"] / MIB})
    for row in _rows(trace, "server"):
        if not _known(row["t_s"]):
            continue
        if counts := _given(row, running="running", waiting="waiting"):
            yield _counter("requests (server's /metrics)", row["t_s"], counts)
        if _known(row["kv_use"]):
            yield _counter("KV pool in use (server's /metrics)", row["t_s"], {"%": 100 * row["kv_use"]})


def _knobs(trace: Trace) -> Iterator[Event]:
    for row in _rows(trace, "knobs"):
        at = row["applied_s"] if _known(row["applied_s"]) else row["sent_s"]
        if _known(at):
            args = {name: value for name, value in row.items() if value is not None}
            yield _instant(f"knobs, revision {row['revision']}", at, ENGINE, _KNOBS, args)


def _given(row: Mapping[str, Any], **columns: str) -> dict[str, float]:
    return {name: row[column] for name, column in columns.items() if row[column] is not None}


def _span(name: str, kind: str, begin: float, end: float, pid: int, tid: int, args: Mapping[str, Any]) -> Event:
    # The end is rounded, not the length: what ends where the next begins must not overlap it by a nanosecond.
    since = us(begin)
    length = round(us(end) - since, 3)
    return {"ph": "X", "name": name, "cat": kind, "ts": since, "dur": length, "pid": pid, "tid": tid, "args": args}


def _instant(name: str, at: float, pid: int, tid: int, args: Mapping[str, Any]) -> Event:
    return {"ph": "i", "s": "t", "name": name, "ts": us(at), "pid": pid, "tid": tid, "args": args}


def _counter(name: str, at: float, values: Mapping[str, float]) -> Event:
    return {"ph": "C", "name": name, "ts": us(at), "pid": COUNTERS, "tid": 0, "args": values}


def _rows(trace: Trace, table: str) -> Iterable[dict[str, Any]]:
    for batch in trace.tables[table].to_batches(max_chunksize=_TABLE_ROWS):
        yield from batch.to_pylist()


def _known(value: Any) -> bool:
    return value is not None and abs(value) <= _LATEST_S  # which neither NaN nor infinity is


def _json(value: Any) -> str:
    return json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"), default=str)


def _finite(value: Any) -> Any:
    """The same without numbers that JSON does not have."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value
