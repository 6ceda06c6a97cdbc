"""A trace as one value a column; columns of half a second over the made run."""

import numpy as np
import pytest

from workbench.errors import InputError
from workbench.learn.curves import over_time

NAN = np.nan


@pytest.mark.parametrize(
    ("curve", "expected"),
    [
        # Gaps of 100 ms but for the one from 1.2 to 3.2 s, which fills all columns that it touches.
        ("longest_gap", [NAN, NAN, 2000, 2000, 2000, 2000, 2000, NAN]),
        # The step of 10 ends at 1.0 s, the edge of a column, and does not reach into the next one.
        ("step_tokens", [NAN, 10, 500, 500, 500, 500, 201, NAN]),
        ("activation", [NAN, 10 / 102.4, *[500 / 102.4] * 4, 201 / 102.4, NAN]),
        ("kv_use", [NAN, 20, 20, 20, 20, 90, 90, NAN]),
    ],
)
def test_the_largest_value_that_touches_a_column(run, curve, expected):
    assert over_time(curve, run, 4.0, 8) == pytest.approx(expected, nan_ok=True, rel=1e-6)


def test_a_run_that_went_on_has_more_columns_and_a_bound(run):
    assert len(over_time("step_tokens", run, 2.0, 4)) == 7  # until 3.3 s
    assert len(over_time("step_tokens", run, 0.2, 4)) == 16  # four times those that were drawn


def test_an_unknown_curve_is_refused_in_one_line(run):
    with pytest.raises(InputError, match=r"^curve: got 'mood', expected one of longest_gap, .*"):
        over_time("mood", run, 4.0, 8)
