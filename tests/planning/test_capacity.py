"""The search for the highest rate that is met, on promises that break at a known rate."""

from __future__ import annotations

import pytest

from workbench.errors import InputError
from workbench.planning.capacity import find_capacity


@pytest.mark.parametrize("first", [0.5, 3.0, 9.9, 10.1, 40.0, 400.0])
@pytest.mark.parametrize("step", [0.05, 0.15])
def test_the_bracket_holds_the_rate_at_which_the_promise_breaks(made_verdict, first, step):
    asked = []

    def play(rate):
        asked.append(rate)
        return made_verdict(rate, rate <= 10.0)

    found = find_capacity(play, first, step)
    assert found.low <= 10.0 < found.high
    assert found.high / found.low == pytest.approx(1 + step)
    assert (found.at.rate, found.over.rate) == (found.low, found.high)
    assert found.plays == len(asked) == len(set(asked)) <= 20
    assert found.stopped == f"the bracket is one step of {step:.0%}"


def test_two_searches_try_the_same_rates(made_verdict):
    found = [find_capacity(lambda rate: made_verdict(rate, rate <= 7), first, 0.15).low for first in (1, 6.9, 50)]
    assert len(set(found)) == 1


def test_a_promise_that_even_a_lone_request_breaks_is_a_capacity_of_zero_with_the_reason(made_verdict):
    rates = []

    def play(rate):
        rates.append(rate)
        return made_verdict(rate, False, stalled=0.4, late=0.0, worst=("document", 0.0))

    found = find_capacity(play, 5.0, 0.15)
    assert (found.low, found.at) == (0.0, None)
    assert found.plays == len(rates) <= 4, "nobody waits for plays that are in vain"
    assert min(rates) == pytest.approx(0.05, rel=0.16), "a hundredth of the first"
    assert "gap too long for 40%" in found.reason
    assert "class document: 0% meet it" in found.reason
    assert find_capacity(play, 5.0, 0.15, doubtful=True).plays == 1


def test_a_promise_that_nothing_breaks_has_no_upper_end_and_says_so(made_verdict):
    found = find_capacity(lambda rate: made_verdict(rate, True), 2.0, 0.15)
    assert found.high is None
    assert found.low == pytest.approx(200, rel=0.16)
    assert found.stopped == f"the highest rate that was tried, {found.low:.4g}/s, is met"
    assert not found.reason


@pytest.mark.parametrize(("first", "step"), [(0, 0.1), (-1, 0.1), (float("nan"), 0.1), (1, 0)])
def test_a_rate_of_zero_is_refused(first, step):
    with pytest.raises(InputError, match=r"^rate: got "):
        find_capacity(lambda rate: None, first, step)
