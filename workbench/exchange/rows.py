"""What the readers of other tools' result files have in common: careful access, and rows of a trace."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from workbench.errors import TraceFileError
from workbench.printable import printable
from workbench.trace import CLOCK_SLACK_S, TABLES, Trace, table_of

CLASS = "imported"
_MOST = 2**31 - 1  # what a column of counts holds
_LATEST_S = 1e9  # thirty years: no run takes longer
_TEXT = 300  # characters of an error that are kept


@dataclass(frozen=True)
class Imported:
    """One request of a result file, on the clock of the tool; None is what the file does not say.

    Attributes:
        name: unique in the file.
        planned_s: arrival that the tool planned.
        sent_s: it sent the request.
        first_s: first output arrived.
        gaps_s: between consecutive arrivals of output after that; None where only the ends are known.
        last_s: last output arrived; by default the sum of the above.
        done_s: the stream ended.
        prompt_tokens: of the prompt.
        output_tokens: of the answer.
        cached_tokens: of the prompt, found in the prefix cache.
        status: ok, error or cancelled.
        error: what went wrong.
    """

    name: str
    sent_s: float | None
    planned_s: float | None = None
    first_s: float | None = None
    gaps_s: Sequence[float] | None = None
    last_s: float | None = None
    done_s: float | None = None
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    status: str = "ok"
    error: str | None = None


@dataclass(frozen=True)
class Results:
    """What a result file holds.

    Attributes:
        tool: that wrote it, with its version if it says so.
        requests: in the file's order.
        about: more metadata: model, address without secrets, rate, and so on.
        missing: what a trace has and this file does not, in words.
    """

    tool: str
    requests: Sequence[Imported]
    about: Mapping[str, Any] = field(default_factory=dict)
    missing: Sequence[str] = ()

    def trace(self) -> Trace:
        """The trace; its zero is the first planned arrival, or the first send where none is known."""
        times = [one.planned_s for one in self.requests if one.planned_s is not None]
        times += [one.sent_s for one in self.requests if one.sent_s is not None]
        zero = min(times, default=0.0)
        tables = {name: schema.empty_table() for name, schema in TABLES.items()}
        rows, tokens = [], []
        for one in self.requests:
            arrivals = _arrivals(one)
            last = one.last_s if one.last_s is not None else arrivals[-1] if arrivals else None
            rows.append(
                {
                    "request": one.name,
                    "class": CLASS,
                    "prompt_tokens": one.prompt_tokens,
                    "max_tokens": None,
                    "planned_s": _since(one.planned_s, zero),
                    "sent_s": _since(one.sent_s, zero),
                    "first_s": _since(one.first_s, zero),
                    "last_s": _since(last, zero),
                    "done_s": _since(one.done_s, zero),
                    "output_tokens": one.output_tokens,
                    "cached_tokens": one.cached_tokens,
                    "status": one.status,
                    "error": one.error,
                }
            )
            # How many tokens an arrival brought is in none of these files; where it is not one, the request's own count
            # is the truth, as for a server that sends text without a running count.
            if one.gaps_s is not None:
                tokens += [
                    {"request": one.name, "index": i, "n": 1, "client_s": at - zero} for i, at in enumerate(arrivals)
                ]
        tables["requests"], tables["tokens"] = table_of("requests", rows), table_of("tokens", tokens)
        return Trace(tables, {"label": f"imported ({self.tool})", "imported": self.facts()})

    def facts(self) -> dict[str, Any]:
        """What is known of the file's origin, for the run's metadata."""
        return {"tool": self.tool, "missing": list(self.missing), **self.about}


class Place:
    """Where in a file something stands, for its errors.

    Args:
        where: the file, and what in it.
    """

    def __init__(self, where: str) -> None:
        self.where = where

    def at(self, part: str) -> Place:
        """A place inside this one."""
        return Place(f"{self.where}: {part}")

    def wrong(self, value: object, expected: str) -> TraceFileError:
        """The error for what stands there."""
        return TraceFileError(self.where, value, expected, "export it again with the tool, or correct the file")

    def mapping(self, value: object) -> Mapping[str, Any]:
        """The value, which must be an object."""
        if not isinstance(value, dict):
            raise self.wrong(_kind(value), "an object")
        return value

    def rows(self, value: object) -> Sequence[Any]:
        """The value, which must be a list."""
        if not isinstance(value, list):
            raise self.wrong(_kind(value), "a list")
        return value

    def seconds(self, value: object, *, least: float = -math.inf, most: float = math.inf) -> float:
        """The value as a finite number within bounds."""
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.wrong(value, "a number")
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number) or not least <= number <= most:
            raise self.wrong(value, "a time that can be")
        return number

    def span(self, value: object) -> float:
        """The value as a length of time, in whatever unit."""
        return self.seconds(value, least=0.0, most=_LATEST_S * 1e3)

    def count(self, value: object, most: int = _MOST) -> int | None:
        """The value as a count; None stays None."""
        if value is None:
            return None
        number = self.seconds(value, least=0, most=float(most))
        if number != int(number):
            raise self.wrong(value, "a whole number")
        return value if isinstance(value, int) else int(number)

    def text(self, value: object) -> str | None:
        """The value as one line of text; None and the empty text are None."""
        if value is None or value == "":
            return None
        return printable(" ".join(str(value).split()))[:_TEXT] or None


def plausible(requests: Iterable[Imported], place: Place) -> None:
    """Refuse times that no run can have: they would make nonsense of every figure.

    A planned arrival may lie after the send: a client may be early. The others follow on each other; tools that read
    a wall clock may have seen it set.

    Raises:
        TraceFileError: two requests are further apart than any run is long, or a request ends before it begins.
    """
    first, last = math.inf, -math.inf
    for one in requests:
        times = [at for at in (one.sent_s, one.first_s, _last(one), one.done_s) if at is not None]
        for before, after in pairwise(times):
            if after < before - CLOCK_SLACK_S:
                back = f"a step of {before - after:g} s back in time"
                raise place.at(one.name).wrong(back, "its send, first output, last output and end in this order")
        every = times if one.planned_s is None else [*times, one.planned_s]
        first, last = min(first, *every, math.inf), max(last, *every, -math.inf)
    if last - first > _LATEST_S:
        raise place.wrong(f"{last - first:g} s between two times", "times of one run")


def _last(one: Imported) -> float | None:
    """When the last output arrived."""
    if one.last_s is not None or one.first_s is None:
        return one.last_s
    return one.first_s + sum(one.gaps_s or ())


def _arrivals(one: Imported) -> list[float]:
    if one.first_s is None:
        return []
    arrivals = [one.first_s]
    for gap in one.gaps_s or ():
        arrivals.append(arrivals[-1] + gap)
    return arrivals


def _since(at: float | None, zero: float) -> float | None:
    return None if at is None else at - zero


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "nothing"}
    return names.get(type(value), "a number")
