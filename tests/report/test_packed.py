"""Tables in a page: small, and the same when they are unpacked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.report.packed import pack, pack_table, unpack, unpack_table


def test_what_is_packed_comes_out_again_to_the_decimals_asked_for():
    frame = pd.DataFrame(
        {
            "request": ["chat-0", "chat-0", None, 'Ü, "x"'],
            "index": [0, 1, 2, 0],
            "at_s": [0.12344, 1.98765, np.nan, 3.0],
            "gap_ms": [31.0214, 30.9996, 7811.0, np.nan],
            "engine_gap_ms": [31.0004, np.nan, 7810.5, 2.0],
            "step": pd.array([5, None, 7, 8], dtype="Int64"),
            "prefill": [True, False, True, False],
        }
    )
    columns = unpack_table(pack_table(frame, {"at_s": 4, "gap_ms": 3, "engine_gap_ms": 3}))
    assert columns == {
        "request": ["chat-0", "chat-0", None, 'Ü, "x"'],
        "index": [0, 1, 2, 0],
        "at_s": [0.1234, 1.9876, None, 3.0],  # numpy rounds to even, and 1.98765 lies just below the half
        "gap_ms": [31.021, 31.0, 7811.0, None],
        "engine_gap_ms": [31.0, None, 7810.5, 2.0],
        "step": [5, None, 7, 8],
        "prefill": [1, 0, 1, 0],
    }


@given(st.lists(st.one_of(st.none(), st.integers(-(2**40), 2**40)), max_size=40))
def test_any_whole_numbers_survive(values):
    frame = pd.DataFrame({"n": pd.array(values, dtype="Int64")})
    assert unpack_table(pack_table(frame, {}))["n"] == values


def test_lists_of_texts_become_one_text():
    frame = pd.DataFrame({"victims": [["a", "b"], None, []]})
    assert unpack_table(pack_table(frame, {}))["victims"] == ["a, b", None, ""]


def test_even_steps_take_next_to_no_room():
    frame = pd.DataFrame({"at_s": np.arange(10_000) * 0.031})
    assert len(pack_table(frame, {"at_s": 4})) < 2_000


def test_the_same_data_give_the_same_text_and_a_cut_one_is_an_error():
    text = pack({"a": [1, 2]})
    assert text == pack({"a": [1, 2]})
    assert unpack(text) == {"a": [1, 2]}
    for broken in (text[:-8], "!!", ""):
        with pytest.raises(ValueError, match=r"."):
            unpack(broken)
    with pytest.raises(ValueError, match="not a table"):
        unpack_table(text)
