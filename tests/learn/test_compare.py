"""A guess against what was measured, in words; all values worked out by hand."""

import math

import pytest

from workbench.learn.compare import Compared, drawn_words, how_far, number


@pytest.mark.parametrize(
    ("guess", "measured", "words"),
    [
        (300, 2560, "8.5 times more"),  # 2560 / 300 = 8.53
        (2560, 300, "8.5 times less"),
        (100, 140, "40 % more"),
        (100, 60, "40 % less"),
        (100, 109, "close (within 10 %)"),
        (7, 7, "exactly"),
        (0, 11, "11 ms more"),  # no ratio with 0
        (3, 0, "3 ms less"),
        (100, 200, "2 times more"),
    ],
)
def test_how_far(guess, measured, words):
    assert how_far(guess, measured, "ms") == words


def test_a_number_is_one_sentence_with_its_ratio():
    one = Compared("longest gap", "ms", 300, 2560)
    assert one.words() == "longest gap: you expected 300 ms; it was 2,560 ms: 8.5 times more."
    assert one.ratio == pytest.approx(8.5333, abs=1e-4)
    assert "not measured" in Compared("peak", "MiB", 3, math.nan).words()


def test_one_of_a_thing_is_singular_and_no_other_unit_loses_its_s():
    units = ("steps", "times", "ms", "s", "MiB", "tokens/s", "%", "步")
    assert [number(1, unit) for unit in units] == [
        *("1 step", "1 time", "1 ms", "1 s", "1 MiB", "1 tokens/s", "1 %", "1 步")
    ]
    assert number(2, "steps") == "2 steps"


def test_numbers_have_three_digits():
    assert [number(x) for x in (2560.4, 12.0, 0.04213, 3.14159, math.nan)] == ["2,560", "12", "0.0421", "3.14", "n/a"]


def test_a_drawn_trace_says_where_the_peaks_are_and_how_far_the_columns_are_apart():
    # Factors of the columns: 10, 2, 1 and 2; the median of 1, 2, 2, 10 is 2. NaN does not count.
    said = drawn_words((10, 10, 10, 20, 5), (100, 20, 10, 10, math.nan), ("0 s", "1 s", "2 s", "3 s", "4 s"), "ms")
    assert said == (
        "the peak was 100 ms at 0 s; you drew the peak at 3 s, 20 ms. "
        "Half of the columns are off by a factor of 2.0 or less."
    )
    flat = drawn_words((5, 5), (1, 20, 20), ("0 s", "1 s", "2 s"), "ms", "they")
    assert flat.startswith("the peak was 20 ms at 1 s; they drew a flat line, 5 ms.")
    assert drawn_words((5,), (math.nan,), ("0 s",), "ms") == "the trace was not measured."
