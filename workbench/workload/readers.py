"""Readers of recorded request traces: Azure LLM CSV, Mooncake JSONL, BurstGPT CSV.

What samples leave out and real files have is normal here: byte-order marks, CRLF, seven-digit fractions, several
requests in one instant, rows out of order, outputs of length 0, failed requests. What is done about a row is counted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from workbench.errors import TraceFileError
from workbench.workload.lengths import Ints
from workbench.workload.paths import is_file
from workbench.workload.trace_rows import HEADERS, Lines, Row, column, csv_rows, mooncake_rows

TraceFormat = Literal["auto", "azure", "mooncake", "burstgpt"]


@dataclass(frozen=True)
class TraceRequests:
    """The requests of a trace file, ordered by arrival.

    Attributes:
        times: arrivals in seconds, speed-up applied; the first is 0.
        prompt_tokens: prompt lengths, 1 or more.
        output_tokens: output lengths, 1 or more.
        blocks: for each request the ids of its prompt's blocks of 512 tokens, where the format has them: equal ids
            are equal text. The last block may be cut short.
        counts: ``rows`` read, ``failed`` (no response, skipped), ``empty_prompt`` (skipped), ``zero_output`` (raised
            to one token), ``reordered`` (rows that were earlier than the row before).
    """

    times: npt.NDArray[np.float64]
    prompt_tokens: Ints
    output_tokens: Ints
    blocks: tuple[tuple[int, ...] | None, ...]
    counts: dict[str, int]


def read_trace(
    path: Path,
    trace_format: TraceFormat = "auto",
    *,
    speed: float = 1.0,
    limit: int | None = None,
    most: int = 1_000_000,
) -> TraceRequests:
    """Read a trace file.

    Args:
        path: the file.
        trace_format: its format; ``auto`` looks at the first line.
        speed: speed-up factor that arrivals are divided by.
        limit: take only the first so many usable rows, in the file's order.
        most: refuse a file with more usable rows than this.

    Raises:
        TraceFileError: the file is missing, empty, too large or not in the format; with the line.
    """
    if not is_file(path):
        raise TraceFileError("trace file", path, "a file that exists", "check the path")
    counts = Counter(rows=0, failed=0, empty_prompt=0, zero_output=0, reordered=0)
    kept: list[Row] = []
    try:
        # A byte that is not UTF-8 becomes a mark that no number holds, so that its line is the one that is named.
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
            lines = Lines(path, file)
            last: float = -math.inf
            for row in _rows(lines, trace_format):
                counts["rows"] += 1
                counts["reordered"] += row.time_ns < last
                last = row.time_ns
                if usable := _usable(row, counts):
                    kept.append(usable)
                if len(kept) == limit:
                    break
                if len(kept) > most:
                    raise lines.error(f"{len(kept)} requests", f"at most {most}", "set a limit")
    except OSError as bad:
        raise TraceFileError("trace file", path, "a file that can be read", str(bad.strerror or bad)) from None
    if not kept:
        seen = ", ".join(f"{n} {what}" for what, n in counts.items() if n)
        raise TraceFileError(str(path), seen or "no requests", "at least one usable request", "use another file")
    kept.sort(key=lambda row: row.time_ns)
    return TraceRequests(
        times=np.array([(row.time_ns - kept[0].time_ns) / (1e9 * speed) for row in kept], dtype=np.float64),
        prompt_tokens=np.array([row.prompt_tokens for row in kept], dtype=np.int64),
        output_tokens=np.array([row.output_tokens for row in kept], dtype=np.int64),
        blocks=tuple(row.blocks for row in kept),
        counts=dict(counts),
    )


def _usable(row: Row, counts: Counter[str]) -> Row | None:
    """The row as it can be played, if it can."""
    if row.output_tokens < 0:
        counts["failed"] += 1
        return None
    if row.prompt_tokens == 0:
        counts["empty_prompt"] += 1
        return None
    if row.output_tokens == 0:
        counts["zero_output"] += 1
        return row._replace(output_tokens=1)
    return row


def _rows(lines: Lines, trace_format: TraceFormat) -> Iterator[Row]:
    """Every row of the file; a failed request has an output length of -1."""
    text = iter(lines)
    first = next((line for line in text if line.strip()), None)
    if first is None:
        raise TraceFileError(str(lines.path), "an empty file", "a request trace", "use another file")
    found = _detect(first)
    if found is None or trace_format not in ("auto", found):
        wanted = [trace_format] if trace_format != "auto" else ["azure", "burstgpt", "mooncake"]
        shapes = [", ".join(HEADERS[name]) if name in HEADERS else "a JSON object a line" for name in wanted]
        raise lines.error(
            first.strip(),
            " or ".join(f"{name} ({shape})" for name, shape in zip(wanted, shapes, strict=True)),
            "use a file in this format" if trace_format != "auto" else "use a file in one of these formats",
        )
    if found == "mooncake":
        return mooncake_rows(lines, first, text)
    return csv_rows(lines, found, first, text)


def _detect(first: str) -> Literal["azure", "mooncake", "burstgpt"] | None:
    if first.lstrip().startswith("{"):
        return "mooncake"
    columns = {column(name) for name in first.split(",")}
    for name in ("azure", "burstgpt"):
        if columns.issuperset(column(c) for c in HEADERS[name]):
            return "azure" if name == "azure" else "burstgpt"
    return None
