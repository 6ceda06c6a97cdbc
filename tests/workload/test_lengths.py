import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from workbench.workload.lengths import Fixed, Length, LogNormal, Uniform

length = TypeAdapter(Length)
rising = st.lists(st.integers(1, 100_000), min_size=4, max_size=4).map(sorted)


def rng(seed=0):
    return np.random.default_rng(seed)


def test_a_bare_number_is_a_fixed_length():
    assert length.validate_python(7) == Fixed(tokens=7)
    assert length.validate_python(7).sample(rng(), 3).tolist() == [7, 7, 7]


@pytest.mark.parametrize("bad", [0, -1, True, 1.5, "many", None, [], {}, {"kind": "zipf"}, {"min": 1, "max": 2}])
def test_what_is_no_length_is_refused(bad):
    with pytest.raises(ValidationError):
        length.validate_python(bad)


def test_an_unknown_kind_is_answered_with_the_known_ones():
    with pytest.raises(ValidationError, match="fixed or uniform or lognormal, or a bare number"):
        length.validate_python({"kind": "zipf"})


@pytest.mark.parametrize(
    "bad",
    [
        {"kind": "uniform", "min": 5, "max": 4},
        {"kind": "lognormal", "median": 10, "p99": 9, "max": 100},
        {"kind": "lognormal", "median": 10, "p99": 90, "max": 80},
        {"kind": "lognormal", "median": 10, "p99": 90, "min": 11, "max": 100},
    ],
)
def test_bounds_in_the_wrong_order_are_refused(bad):
    with pytest.raises(ValidationError):
        length.validate_python(bad)


@settings(deadline=None)
@given(bounds=rising, seed=st.integers(0, 2**32 - 1))
def test_samples_lie_within_the_bounds_and_depend_on_the_seed_alone(bounds, seed):
    low, median, p99, high = bounds
    for kind in (
        Fixed(tokens=high),
        Uniform(min=low, max=high),
        LogNormal(min=low, median=median, p99=p99, max=high),
    ):
        drawn = kind.sample(rng(seed), 50)
        assert drawn.dtype == np.int64
        assert drawn.min() >= (high if isinstance(kind, Fixed) else low)
        assert drawn.max() <= kind.longest == high
        assert drawn.tolist() == kind.sample(rng(seed), 50).tolist()


def test_uniform_reaches_both_ends():
    assert set(Uniform(min=3, max=5).sample(rng(), 200).tolist()) == {3, 4, 5}


def test_lognormal_has_the_median_and_the_p99_that_were_asked_for():
    drawn = LogNormal(median=200, p99=1500, max=10_000_000).sample(rng(), 200_000)
    # Standard error of the median is 0.25 %, of the p99 about 0.8 %: both bounds are four of them away.
    assert np.median(drawn) == pytest.approx(200, rel=0.01)
    assert np.percentile(drawn, 99) == pytest.approx(1500, rel=0.035)


def test_lognormal_without_spread_is_its_median():
    assert set(LogNormal(median=64, p99=64, max=64).sample(rng(), 100).tolist()) == {64}
