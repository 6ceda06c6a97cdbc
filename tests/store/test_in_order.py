"""Rows that come nearly in order are sorted piece by piece, and what is held is only what is late."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.store.in_order import in_order

VALUES = st.one_of(st.none(), st.integers(-20, 20).map(float))
BATCHES = st.lists(st.lists(VALUES, max_size=12), max_size=8)


def tables(batches):
    """Batches of a column ``t``, with the place of each row in all of them."""
    places = iter(range(10_000))
    schema = pa.schema({"t": pa.float64(), "place": pa.int64()})
    return [pa.Table.from_pylist([{"t": t, "place": next(places)} for t in batch], schema=schema) for batch in batches]


@settings(deadline=None, max_examples=150)
@given(batches=BATCHES, group=st.integers(1, 30))
def test_it_is_a_stable_sort_with_nulls_last(batches, group):
    given_rows = [(t, place) for table in tables(batches) for t, place in zip(*table.to_pydict().values(), strict=True)]
    expected = sorted(given_rows, key=lambda row: (row[0] is None, row[0] or 0.0))
    pieces = list(in_order(tables(batches), "t", group))
    got = [row for piece in pieces for row in zip(*piece.to_pydict().values(), strict=True)]
    assert got == expected
    assert all(piece.num_rows for piece in pieces)


class Watched:
    """Batches in order but for rows that are up to ``late`` places late; notes how far ahead they were read."""

    def __init__(self, count, rows, late):
        self.read = 0
        order = np.arange(count * rows, dtype=float)
        order += np.random.default_rng(3).uniform(0, late, len(order))
        self._tables = [pa.table({"t": order[i * rows : (i + 1) * rows]}) for i in range(count)]

    def __iter__(self):
        self.read = 0
        for table in self._tables:
            self.read += table.num_rows
            yield table


@pytest.mark.parametrize("late", [0, 150])
def test_what_is_held_is_what_is_late_and_a_piece(late):
    batches, given_back, most = Watched(400, 50, late), 0, 0
    for piece in in_order(batches, "t", 500):
        most = max(most, batches.read - given_back)
        given_back += piece.num_rows
    assert given_back == 400 * 50
    assert most <= 500 + 50 + 2 * late + 50, "of 20,000 rows"
