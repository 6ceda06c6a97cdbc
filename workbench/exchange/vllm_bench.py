"""Result files of ``vllm bench serve --save-result --save-detailed`` (vLLM 0.32, ``vllm/benchmarks/serve.py``).

It holds, for each request, when it was sent, its TTFT, the time between chunks of output, its latency, lengths and an
error. It does not hold when a request was planned: TTFT counts from the send.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.exchange.rows import Imported, Place, Results, plausible

_ABOUT = ("date", "backend", "model_id", "num_prompts", "request_rate", "burstiness", "max_concurrency", "duration")
_MISSING = (
    "the planned arrival of a request: TTFT counts from its send, and a client that was late does not show",
    "how many tokens each chunk brought",
)
_MORE = ("latencies",)  # newer files have it
DETAILS = ("start_times", "ttfts", "itls", "input_lens", "output_lens", "errors")


def is_vllm_bench(data: Mapping[str, Any]) -> bool:
    """Whether it looks like such a file, with details or without."""
    return "num_prompts" in data and ("ttfts" in data or "mean_ttft_ms" in data)


def read_vllm_bench(data: Mapping[str, Any], place: Place) -> Results:
    """Read one.

    Raises:
        TraceFileError: it was saved without details, or something in it is wrong.
    """
    missing = [name for name in DETAILS if name not in data]
    if missing:
        raise place.wrong(f"no {missing[0]}", "a file saved with --save-detailed")
    names = (*DETAILS, *(name for name in _MORE if name in data))
    columns = {name: place.at(name).rows(data[name]) for name in names}
    counts = {name: len(rows) for name, rows in columns.items()}
    if len(set(counts.values())) > 1:
        raise place.wrong(", ".join(f"{n} {name}" for name, n in counts.items()), "as many of each")
    requests = [_request(i, {name: rows[i] for name, rows in columns.items()}, place) for i in range(counts["ttfts"])]
    plausible(requests, place)
    said = {name: data[name] for name in _ABOUT if isinstance(data.get(name), str | int | float | None)}
    about = {name: place.text(value) if isinstance(value, str) else value for name, value in said.items()}
    return Results("vllm bench serve", requests, about, _MISSING)


def _request(i: int, row: Mapping[str, Any], place: Place) -> Imported:
    here = place.at(f"request {i}")
    sent = here.at("start_times").seconds(row["start_times"])
    ttft = here.at("ttfts").span(row["ttfts"])
    gaps = [here.at("itls").span(gap) for gap in here.at("itls").rows(row["itls"])]
    error = here.at("errors").text(row["errors"])
    output = here.at("output_lens").count(row["output_lens"])
    came = ttft > 0  # 0 is what it writes where nothing came
    latency = here.at("latencies").span(row["latencies"]) if "latencies" in row else 0.0
    return Imported(
        name=f"request-{i}",
        sent_s=sent,
        first_s=sent + ttft if came else None,
        gaps_s=gaps if came else None,
        done_s=sent + latency if latency > 0 else None,
        prompt_tokens=here.at("input_lens").count(row["input_lens"]),
        output_tokens=output,
        status="error" if error is not None or not came else "ok",
        error=error if error is not None else None if came else "no output arrived",
    )
