"""Result files of GuideLLM 0.8 (``guidellm run --output kind=json``).

It holds, for each request, its targeted start, its send, the first and the last token, and counts. It does not hold the
arrivals between first and last: a trace of it has TTFT and TPOT, and no gaps. One file may hold several benchmarks;
each is a run of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.exchange.rows import Imported, Place, Results, plausible

_STATUS = {"successful": "ok", "errored": "error", "incomplete": "cancelled"}
_TIMED = ("constant", "poisson", "async", "replay")  # strategies that plan arrivals
_MISSING = ("the arrivals between a request's first and last token: there are no gaps",)
_UNPLANNED = "a planned arrival: its strategy sends as soon as it may, and TTFT counts from the send"


def is_guidellm(data: Mapping[str, Any]) -> bool:
    """Whether it looks like such a file."""
    metadata = data.get("metadata")
    return isinstance(metadata, dict) and "guidellm_version" in metadata and "benchmarks" in data


def read_guidellm(data: Mapping[str, Any], place: Place, which: int | None = None) -> Results:
    """Read one of its benchmarks.

    Args:
        data: the file.
        place: where it stands.
        which: number of the benchmark; may be left out where there is one.

    Raises:
        TraceFileError: there is no such benchmark, or something in it is wrong.
    """
    benchmarks = place.at("benchmarks").rows(data["benchmarks"])
    if which is None and len(benchmarks) != 1:
        raise place.wrong(
            f"{len(benchmarks)} benchmarks", "one; name one by its number, 0 to the number of them less 1"
        )
    number = which or 0
    if not 0 <= number < len(benchmarks):
        raise place.wrong(f"benchmark {number}", f"0 to {len(benchmarks) - 1}")
    here = place.at(f"benchmark {number}")
    benchmark = here.mapping(benchmarks[number])
    config = here.at("config").mapping(benchmark.get("config") or {})
    strategy = here.at("config.strategy").mapping(config.get("strategy") or {})
    kind = strategy.get("type_")
    planned = kind in _TIMED
    groups = here.at("requests").mapping(benchmark.get("requests"))
    requests = [
        _request(f"{name}-{i}", _STATUS[name], row, planned, here.at(f"{name}[{i}]"))
        for name in _STATUS
        for i, row in enumerate(here.at(f"requests.{name}").rows(groups.get(name) or []))
    ]
    plausible(requests, here)
    backend = config.get("backend")
    about = {
        "strategy": here.text(kind),
        "model_id": here.text(backend.get("model")) if isinstance(backend, dict) else None,
        "benchmark": number,
    }
    version = here.text(data["metadata"].get("guidellm_version"))
    return Results(f"GuideLLM {version}", requests, about, (*_MISSING, *(() if planned else (_UNPLANNED,))))


def _request(name: str, status: str, row: object, planned: bool, place: Place) -> Imported:
    found = place.mapping(row)
    info = place.at("info").mapping(found.get("info") or {})
    timings = place.at("info.timings").mapping(info.get("timings") or {})

    def time(key: str) -> float | None:
        value = timings.get(key)
        return None if value is None else place.at(key).seconds(value)

    first = time("first_token_iteration")
    error = place.text(info.get("error"))
    return Imported(
        name=name,
        planned_s=time("targeted_start") if planned else None,
        sent_s=time("request_start"),
        first_s=first,
        last_s=time("last_token_iteration") if first is not None else None,
        done_s=time("request_end"),
        prompt_tokens=place.at("prompt_tokens").count(found.get("prompt_tokens")),
        output_tokens=place.at("output_tokens").count(found.get("output_tokens")),
        cached_tokens=place.at("cached_tokens").count(found.get("cached_tokens")),
        status=status,
        error=error if error is not None else None if status == "ok" else f"the tool says {status}",
    )
