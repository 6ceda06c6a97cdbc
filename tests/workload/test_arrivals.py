import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from workbench.workload.arrivals import Arrivals, AtOnce, Concurrency, Constant, Gamma, Poisson, Trace

arrivals = TypeAdapter(Arrivals)
rates = st.floats(0.01, 1000)
counts = st.integers(1, 300)


def rng(seed=0):
    return np.random.default_rng(seed)


def test_at_once_and_concurrency_are_all_there_from_the_start():
    assert AtOnce(count=3).times(rng()).tolist() == [0, 0, 0]
    assert Concurrency(in_flight=2, count=3).times(rng()).tolist() == [0, 0, 0]


def test_constant_is_evenly_spaced():
    assert Constant(rate=4, count=3).times(rng()).tolist() == [0, 0.25, 0.5]
    assert Constant(rate=4, duration_s=1).times(rng()).tolist() == [0, 0.25, 0.5, 0.75]
    assert Constant(rate=0.001, duration_s=1).times(rng()).tolist() == [0]


def test_rounding_adds_no_arrival():
    assert 2.2 * 25 > 55
    assert len(Constant(rate=2.2, duration_s=25).times(rng())) == 55


@settings(deadline=None)
@given(rate=rates, count=counts, cv=st.floats(0.01, 10), seed=st.integers(0, 2**32 - 1))
def test_counted_arrivals_are_sorted_and_complete(rate, count, cv, seed):
    for kind in (
        Constant(rate=rate, count=count),
        Poisson(rate=rate, count=count),
        Gamma(rate=rate, count=count, cv=cv),
    ):
        times = kind.times(rng(seed))
        assert len(times) == count
        assert times[0] >= 0
        assert np.isfinite(times).all()
        assert (np.diff(times) >= 0).all()
        assert times.tolist() == kind.times(rng(seed)).tolist()


@settings(deadline=None)
@given(rate=rates, duration=st.floats(0.01, 10), cv=st.floats(0.01, 10), seed=st.integers(0, 2**32 - 1))
def test_timed_arrivals_are_sorted_and_end_in_time(rate, duration, cv, seed):
    for kind in (
        Constant(rate=rate, duration_s=duration),
        Poisson(rate=rate, duration_s=duration),
        Gamma(rate=rate, duration_s=duration, cv=cv),
    ):
        times = kind.times(rng(seed))
        assert ((times >= 0) & (times < duration)).all()
        assert (np.diff(times) >= 0).all()


@settings(deadline=None)
@given(seed=st.integers(0, 1000), cv=st.floats(0.1, 5))
def test_a_duration_stops_the_same_process_that_a_count_stops(seed, cv):
    """Up to its end a timed stream is the counted one: nothing is lost or added where draws are joined."""
    timed = Gamma(rate=20, duration_s=5, cv=cv).times(rng(seed))
    counted = Gamma(rate=20, count=len(timed) + 1, cv=cv).times(rng(seed))
    assert timed == pytest.approx(counted[:-1])
    assert counted[-1] >= 5 - 1e-9


def test_poisson_and_gamma_have_the_rate_and_the_burstiness_asked_for():
    for kind, cv in ((Poisson(rate=5, count=100_000), 1), (Gamma(rate=5, cv=3, count=100_000), 3)):
        gaps = np.diff(kind.times(rng()), prepend=0)
        # Standard errors: cv / sqrt(n) of the mean is at most 1 %.
        assert gaps.mean() == pytest.approx(1 / 5, rel=0.04)
        assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.06)


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"kind": "sometimes"},
        {"kind": "poisson", "rate": 1},
        {"kind": "poisson", "rate": 1, "count": 1, "duration_s": 1},
        {"kind": "poisson", "rate": 0, "count": 1},
        {"kind": "poisson", "rate": float("nan"), "count": 1},
        {"kind": "constant", "rate": 10_000, "duration_s": 604_800},
        {"kind": "gamma", "rate": 1, "count": 1, "cv": 0},
        {"kind": "at_once", "count": 10**12},
        {"kind": "trace", "path": "x", "speed": 0},
    ],
)
def test_what_is_no_arrival_process_is_refused(bad):
    with pytest.raises(ValidationError):
        arrivals.validate_python(bad)


def test_a_trace_gives_its_own_times(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("Timestamp,Request tokens,Response tokens\n10,5,5\n30,5,5\n")
    assert Trace(path=path, speed=4).times(rng()).tolist() == [0, 5]
