"""Grids of settings."""

import pytest

from workbench.errors import InputError
from workbench.sweep import grid


def test_a_grid_holds_all_combinations_in_order():
    settings = grid({"budget": [64, 256], "chunk": [0, 128], "policy": []})
    assert [(s.budget, s.chunk, s.policy) for s in settings] == [
        (64, 0, None),
        (64, 128, None),
        (256, 0, None),
        (256, 128, None),
    ]
    assert [s.name for s in settings][:2] == ["budget 64 chunk 0", "budget 64 chunk 128"]


def test_names_differ():
    names = [s.name for s in grid({"budget": [64, 256], "policy": ["chunked", "decode_first"]})]
    assert len(set(names)) == 4


def test_a_value_given_twice_counts_once():
    assert [s.budget for s in grid({"budget": [64, 256, 64]})] == [64, 256]


def test_a_grid_without_values_is_empty():
    assert grid({"budget": []}) == ()


def test_too_many_combinations_are_refused():
    with pytest.raises(InputError, match="at most 1000"):
        grid({"budget": list(range(1, 102)), "chunk": list(range(10))})
