"""Every token gap of a run, fast enough for millions of them: numpy arrays sorted by stream and time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from workbench.trace import Trace, floats

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def gaps(trace: Trace) -> pd.DataFrame:
    """Return one row a gap: the time between two consecutive arrivals of output on one stream.

    An arrival of k tokens ends one gap with ``n`` = k. The first arrival of a stream ends none.

    Columns: ``request``, ``class`` (categories; class is missing for a request that has no row), ``index`` (of the
    first token that ended the gap), ``n``, ``at_s`` (when it ended), ``gap_ms``, ``engine_gap_ms`` (the same between
    the ends of the steps that made the tokens; NaN where unknown), ``lag_ms`` (the difference: front end and client).
    """
    found = Gaps.of(trace)
    return pd.DataFrame(
        {
            "request": pd.Categorical.from_codes(found.code, pd.Index(found.names, dtype=object)),
            "class": pd.Categorical.from_codes(found.of_class[found.code], pd.Index(found.classes, dtype=object)),
            "index": found.index,
            "n": found.n,
            "at_s": found.at_s,
            "gap_ms": found.gap_ms,
            "engine_gap_ms": found.engine_gap_ms,
            "lag_ms": found.gap_ms - found.engine_gap_ms,
        }
    )


@dataclass(frozen=True)
class Gaps:
    """The gaps and streams of a trace as arrays; those of gaps are sorted by stream, then by time.

    Attributes:
        names: request of each stream.
        classes: names of the classes.
        of_class: for each stream, where its class is in ``classes``; -1 is unknown.
        first_s: first arrival of each stream.
        last_s: last arrival of each stream.
        tokens: tokens that arrived on each stream.
        code: for each gap, where its stream is in ``names``.
        index: first token that ended the gap.
        n: tokens that ended it.
        begin_s: when it began.
        at_s: when it ended.
        engine_begin_s: when the engine made the token before it; NaN is unknown.
        engine_at_s: when the engine made the token that ended it; NaN is unknown.
    """

    names: list[str]
    classes: list[str]
    of_class: Ints
    first_s: Floats
    last_s: Floats
    tokens: Ints
    code: Ints
    index: Ints
    n: Ints
    begin_s: Floats
    at_s: Floats
    engine_begin_s: Floats
    engine_at_s: Floats

    @classmethod
    def of(cls, trace: Trace) -> Gaps:
        """Compute them; arrivals without a request or a time are left out."""
        table = trace.tables["tokens"]
        names, code = encode(table["request"])
        at, index, n, engine = (floats(table[name]) for name in ("client_s", "index", "n", "engine_s"))
        at = np.where(np.isnan(at), engine, at)  # a simulated run has no client: what is made has arrived
        sound = (code >= 0) & np.isfinite(at)
        if not sound.all():
            code, at, index, n, engine = (column[sound] for column in (code, at, index, n, engine))
        order = _by_stream(code, at)
        code, at, engine = code[order], at[order], engine[order]
        index, n = (np.nan_to_num(column[order]).astype(np.int64) for column in (index, n))
        same = code[1:] == code[:-1]
        first = np.flatnonzero(np.concatenate(([True], ~same))) if len(code) else np.empty(0, np.int64)
        last = np.concatenate((first[1:], [len(code)])) - 1 if len(code) else first
        names = [names[c] for c in code[first]]  # only streams on which something arrived
        code = np.repeat(np.arange(len(first)), last - first + 1)
        classes, of_class = _classes(trace, names)
        return cls(
            names=names,
            classes=classes,
            of_class=of_class,
            first_s=at[first],
            last_s=at[last],
            tokens=np.add.reduceat(n, first) if len(n) else n,
            code=code[1:][same],
            index=index[1:][same],
            n=n[1:][same],
            begin_s=at[:-1][same],
            at_s=at[1:][same],
            engine_begin_s=engine[:-1][same],
            engine_at_s=engine[1:][same],
        )

    @cached_property
    def gap_ms(self) -> Floats:
        """Length of each gap at the client."""
        return (self.at_s - self.begin_s) * 1e3

    @cached_property
    def engine_gap_ms(self) -> Floats:
        """Length of each gap in the engine; NaN is unknown."""
        return (self.engine_at_s - self.engine_begin_s) * 1e3

    @cached_property
    def count(self) -> Ints:
        """Gaps of each stream."""
        return np.bincount(self.code, minlength=len(self.names))

    def worst_ms(self, percentile: float = 100.0) -> Floats:
        """Return that percentile of each stream's gaps; NaN where it has none."""
        worst: Floats = np.full(len(self.names), np.nan)
        some = np.flatnonzero(self.count)
        begin = np.cumsum(self.count)[some] - self.count[some]
        if not len(some):
            return worst
        if percentile >= 100:
            worst[some] = np.maximum.reduceat(self.gap_ms, begin)
        else:
            by_length = np.argsort(self.gap_ms)
            by_length = by_length[np.argsort(_small(self.code[by_length]), kind="stable")]
            place = begin + (self.count[some] - 1) * percentile / 100
            low, high = (self.gap_ms[by_length[edge(place).astype(np.int64)]] for edge in (np.floor, np.ceil))
            worst[some] = low + (high - low) * (place % 1)
        return worst


def encode(column: pa.ChunkedArray) -> tuple[list[str], Ints]:
    """Return the distinct texts of a column and, for each row, which one it is; -1 is null."""
    coded = column.combine_chunks().dictionary_encode()
    codes: Ints = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return coded.dictionary.to_pylist(), codes


def in_groups(code: Ints) -> Ints:
    """Order that puts equal codes together, and keeps what is equal as it was."""
    return np.argsort(_small(code), kind="stable")


def _by_stream(code: Ints, at: Floats) -> NDArray[Any]:
    """Order by stream, then by time, then as it was."""
    if not bool((at[1:] >= at[:-1]).all()):
        order: NDArray[Any] = np.lexsort((at, code))
        return order
    return in_groups(code)


def _small(code: Ints) -> NDArray[Any]:
    """The same numbers in 16 bits where they fit, which numpy sorts four times as fast."""
    return code.astype(np.uint16) if len(code) and code.max() < 2**16 else code


def class_of(trace: Trace) -> dict[str, str | None]:
    """The class of each request that has a row."""
    table = trace.tables["requests"]
    return dict(zip(table["request"].to_pylist(), table["class"].to_pylist(), strict=True))


def _classes(trace: Trace, names: list[str]) -> tuple[list[str], Ints]:
    table = trace.tables["requests"]
    classes, code = encode(table["class"])
    known = dict(zip(table["request"].to_pylist(), code.tolist(), strict=True))
    return classes, np.array([known.get(name, -1) for name in names], dtype=np.int64)
