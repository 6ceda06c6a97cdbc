"""Sorts a stream of batches that is nearly in order, without ever holding all of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

GROUP_ROWS = 1 << 17  # of a piece that is given back: some 10 MB of the widest table

Floats = NDArray[np.float64]


def in_order(batches: Iterable[pa.Table], by: str, group_rows: int = GROUP_ROWS) -> Iterator[pa.Table]:
    """Give the rows of all batches back in pieces, sorted by a numeric column; equals keep their order, nulls go last.

    Rows come in about when they happen, so a row is held only until no later batch can have one that goes before it.
    What is held is therefore as much as rows are late; all of it where they come in no order at all.

    Args:
        batches: iterated up to three times: for the lowest value of each, for the rows, and for those without a value.
        by: the column.
        group_rows: rows of a piece, at least; the last of the values and of the nulls may be smaller.
    """
    lows, nulls = [], 0
    for batch in batches:
        values = _values(batch, by)
        known = values[~np.isnan(values)]
        lows.append(known.min() if known.size else np.inf)
        nulls += len(values) - known.size
    # Of all batches after this one.
    after = np.minimum.accumulate(np.array([*lows[1:], np.inf])[::-1])[::-1] if lows else np.empty(0)
    held: list[pa.Table] = []
    rows, wanted = 0, group_rows
    for batch, low in zip(batches, after, strict=False):
        held.append(batch.filter(pa.array(~np.isnan(_values(batch, by)))) if nulls else batch)
        rows += held[-1].num_rows
        if rows < wanted:
            continue
        whole = sort(pa.concat_tables(held).combine_chunks(), by)
        ready = int(np.searchsorted(_values(whole, by), low, side="right"))
        if ready:
            yield whole.slice(0, ready)
        held, rows = [whole.slice(ready)], whole.num_rows - ready
        wanted = max(group_rows, 2 * rows)  # so that what waits long is not sorted each time
    if rows:
        yield sort(pa.concat_tables(held), by)
    if nulls:
        yield from _grouped((batch.filter(pa.array(np.isnan(_values(batch, by)))) for batch in batches), group_rows)


def sort(table: pa.Table, by: str) -> pa.Table:
    """Sort by a numeric column, keeping the order of equals; nulls go last."""
    values = _values(table, by)
    if not np.isnan(values).any() and bool((values[1:] >= values[:-1]).all()):
        return table
    return table.take(pa.array(np.argsort(values, kind="stable")))


def _grouped(tables: Iterable[pa.Table], group_rows: int) -> Iterator[pa.Table]:
    held: list[pa.Table] = []
    rows = 0
    for table in tables:
        held.append(table)
        rows += table.num_rows
        if rows >= group_rows:
            yield pa.concat_tables(held)
            held, rows = [], 0
    if rows:
        yield pa.concat_tables(held)


def _values(table: pa.Table, by: str) -> Floats:
    return np.asarray(table[by].to_numpy(), dtype=np.float64)
