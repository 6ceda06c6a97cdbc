"""The rows of request traces, one parser a format; a cell that cannot be read is named with its line."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from workbench.errors import TraceFileError
from workbench.workload.lengths import MAX_TOKENS

BLOCK_TOKENS = 512  # tokens behind one hash id of a Mooncake trace
_LONGEST_LINE = 1 << 20
_LATEST_S = 1e12  # later than any date a calendar holds
_WHOLE = f"a whole number of tokens, 0 to {MAX_TOKENS}"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DATE = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:\.(\d+))?(Z|[+-]\d\d:?\d\d)?", re.ASCII)

HEADERS = {
    "azure": ("TIMESTAMP", "ContextTokens", "GeneratedTokens"),
    "burstgpt": ("Timestamp", "Request tokens", "Response tokens"),
}
_MOONCAKE = ("timestamp", "input_length", "output_length")


class Row(NamedTuple):
    """One request as the file has it; the time is an integer, exact to a nanosecond, and counts from any zero."""

    time_ns: int
    prompt_tokens: int
    output_tokens: int
    blocks: tuple[int, ...] | None = None


class Lines:
    """The lines of a file, with the number of the last one for error messages."""

    def __init__(self, path: Path, file: IO[str]) -> None:
        self.path, self.file, self.number = path, file, 0

    def __iter__(self) -> Iterator[str]:
        while line := self.file.readline(_LONGEST_LINE + 1):
            self.number += 1
            if len(line) > _LONGEST_LINE:
                raise self.error(line[:40], f"a line of at most {_LONGEST_LINE} characters")
            yield line

    def error(self, value: object, expected: str, fix: str = "correct the line or remove it") -> TraceFileError:
        """The error for something on the last line that was read."""
        return TraceFileError(f"{self.path} line {self.number}", value, expected, fix)


def column(name: str) -> str:
    """A column's name without what a spreadsheet may have done to it."""
    return name.strip().strip('"').strip().casefold()


def csv_rows(lines: Lines, found: Literal["azure", "burstgpt"], header: str, text: Iterator[str]) -> Iterator[Row]:
    """Parse an Azure LLM or BurstGPT file, whose columns are found by name.

    Args:
        lines: the file, for the place of an error.
        found: its format; a BurstGPT row without response tokens failed and has an output length of -1.
        header: its first line.
        text: the lines after that.

    Raises:
        TraceFileError: a row that cannot be read, with its line.
    """
    names = [column(name) for name in header.split(",")]
    wanted = HEADERS[found]
    places = [names.index(column(name)) for name in wanted]
    parse_time: Callable[[str], int] = _date if found == "azure" else _seconds
    expected = "a date and time" if found == "azure" else "a number of seconds"
    reader = csv.reader(text, strict=True)
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as bad:
            raise lines.error(str(bad), "a line of comma-separated values") from None
        if not any(cell.strip() for cell in cells):
            continue
        if len(cells) <= max(places):
            raise lines.error(",".join(cells), f"{len(names)} columns ({', '.join(wanted)})")
        when, prompt, output = (cells[place].strip() for place in places)
        time_ns = _checked(lines, wanted[0], when, parse_time, expected)
        tokens = _checked(lines, wanted[2], output, _whole, _WHOLE)
        yield Row(
            time_ns,
            _checked(lines, wanted[1], prompt, _whole, _WHOLE),
            -1 if found == "burstgpt" and tokens == 0 else tokens,
        )


def _checked(lines: Lines, name: str, cell: str, parse: Callable[[str], int], expected: str) -> int:
    try:
        return parse(cell)
    except (ValueError, OverflowError):
        raise lines.error(f"{name} {cell}", expected) from None


def _whole(cell: str) -> int:
    """A count of tokens; a spreadsheet may have made 12 into 12.0."""
    value = float(cell)
    if not (value.is_integer() and 0 <= value <= MAX_TOKENS):
        raise ValueError(cell)
    return int(value)


def _seconds(cell: str) -> int:
    value = float(cell)
    if not abs(value) <= _LATEST_S:
        raise ValueError(cell)
    return round(value * 1e9)


def _date(cell: str) -> int:
    """Nanoseconds of a date; Azure has seven fractional digits, Python reads six."""
    found = _DATE.fullmatch(cell)
    if not found:
        raise ValueError(cell)
    moment, fraction, zone = found.groups(default="")
    since = datetime.fromisoformat(moment + (zone or "+00:00")) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 10**9 + int(fraction.ljust(9, "0")[:9])


def mooncake_rows(lines: Lines, first: str, text: Iterator[str]) -> Iterator[Row]:
    """Parse a Mooncake file: a JSON object a line, times in milliseconds.

    Args:
        lines: the file, for the place of an error.
        first: its first line.
        text: the lines after that.

    Raises:
        TraceFileError: a row that cannot be read, with its line.
    """
    yield _mooncake_row(lines, first)
    for line in text:
        if line.strip():
            yield _mooncake_row(lines, line)


def _mooncake_row(lines: Lines, line: str) -> Row:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as bad:
        raise lines.error(line.strip(), f"a JSON object ({bad})") from None
    if not isinstance(row, dict):
        raise lines.error(line.strip(), "a JSON object")
    missing = [name for name in _MOONCAKE if name not in row]
    if missing:
        raise lines.error(line.strip(), f"the field {missing[0]}")
    when, prompt, output = (row[name] for name in _MOONCAKE)
    if not _is_number(when) or not abs(when) <= _LATEST_S * 1000:
        raise lines.error(f"timestamp {when}", "a number of milliseconds")
    for name, value in (("input_length", prompt), ("output_length", output)):
        if not _is_number(value) or not 0 <= value <= MAX_TOKENS or value != int(value):
            raise lines.error(f"{name} {value}", _WHOLE)
    return Row(round(when * 1_000_000), int(prompt), int(output), _blocks(lines, row.get("hash_ids")))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _blocks(lines: Lines, ids: Any) -> tuple[int, ...] | None:
    if ids is None:
        return None
    if not isinstance(ids, list) or not all(isinstance(i, int) and not isinstance(i, bool) for i in ids):
        raise lines.error(f"hash_ids {ids}", "a list of whole numbers")
    return tuple(ids)
