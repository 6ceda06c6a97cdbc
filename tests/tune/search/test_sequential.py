"""The sequential test: certain where it says so, and wrong no more often than it says."""

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from search_stand_ins import a_workload

from workbench.config import SLO
from workbench.errors import InputError
from workbench.tune.goal import Goal
from workbench.tune.search.sequential import Count, Sequential


def fed(values, limit, share, rate, total=None):
    """How many values it took to stop, and how; all of them and nothing if it did not."""
    count = Count(limit, total or len(values), share, rate)
    for n, value in enumerate(values, 1):
        count.take(value)
        if count.certain or count.likely:
            return n, "certain" if count.certain else "likely"
    return len(values), None


@given(st.lists(st.floats(0, 400, allow_nan=False), min_size=2, max_size=300), st.sampled_from([0.0, 0.01, 0.1, 0.5]))
@settings(max_examples=300, deadline=None)
def test_what_is_certain_is_true_and_what_is_not_stopped_is_within(values, share):
    limit = 200.0
    percentile = float(np.percentile(values, 100 * (1 - share)))
    _, how = fed(values, limit, share, 0.0)
    if how == "certain":
        assert percentile > limit
    elif percentile > limit:
        # Only interpolation between the last value within and the first above can be: no count tells that before.
        assert sum(value > limit for value in values) == Count(limit, len(values), share, 0.0).allowed


def test_as_many_as_a_percentile_allows():
    # P99 of 101 values is the second largest; of 1001 the 11th largest: so many less one may be above.
    assert [Count(1.0, n, 0.01, 0.0).allowed for n in (0, 1, 20, 101, 1001)] == [0, 0, 1, 1, 10]
    assert Count(1.0, 500, 0.0, 0.1).allowed == 0


@pytest.mark.parametrize("rate", [0.05, 0.2])
def test_runs_that_just_meet_their_limit_are_stopped_no_more_often_than_stated(rate):
    rng, runs, total = random.Random(7), 600, 1000
    allowed = Count(1.0, total, 0.01, rate).allowed
    stopped = 0
    for _ in range(runs):
        values = [2.0] * allowed + [0.5] * (total - allowed)
        rng.shuffle(values)
        stopped += fed(values, 1.0, 0.01, rate)[1] is not None
    # Ville's bound holds for the expectation: three standard deviations above it are the room of 600 runs.
    assert stopped / runs <= rate + 3 * (rate * (1 - rate) / runs) ** 0.5


def test_it_stops_long_before_it_is_certain_where_much_is_above():
    rng, total = random.Random(3), 2000
    values = [2.0 if rng.random() < 0.02 else 0.5 for _ in range(total)]
    with_rate, how = fed(values, 1.0, 0.01, 0.05)
    certain, _ = fed(values, 1.0, 0.01, 0.0)
    assert how == "likely"
    assert total // 4 <= with_rate < certain


def tokens(*rows):
    return [("tokens", [{"request": name, "index": 0, "n": 1, "client_s": at} for name, at in rows])]


def test_one_gap_is_enough_for_a_maximum():
    watch = Sequential(Goal(limits={"gap_max_ms": 300.0}))
    watch.begin(a_workload())
    assert watch.look(tokens(("chat-0", 0.1), ("chat-0", 0.39))) is None
    stop = watch.look(tokens(("chat-0", 0.8)))
    assert stop.constraint == "gap_max_ms"
    assert stop.excess == pytest.approx(410 / 300 - 1)
    assert "certain" in stop.why


def test_a_gap_that_is_still_open_counts():
    watch = Sequential(Goal(limits={"gap_max_ms": 300.0}))
    watch.begin(a_workload())
    assert watch.look(tokens(("chat-0", 0.1), ("chat-1", 0.7))) is None  # rows may come half a second apart
    assert watch.look(tokens(("chat-1", 0.95))).constraint == "gap_max_ms"


def test_a_stream_that_ended_has_no_open_gap():
    watch = Sequential(Goal(limits={"gap_max_ms": 300.0}))
    watch.begin(a_workload())
    watch.look(tokens(("chat-0", 0.1)))
    ended = {"request": "chat-0", "status": "ok", "planned_s": 0.0, "first_s": 0.1}
    assert watch.look([("requests", [ended]), *tokens(("chat-1", 2.0))]) is None


def test_a_first_token_that_is_late_counts_before_it_comes():
    watch = Sequential(Goal(limits={"ttft_max_s.chat": 2.0}, slo=SLO(ttft_ms=1000)))
    watch.begin(a_workload())
    assert watch.look(tokens(("chat-1", 2.4))) is None
    assert watch.look([("memory", [{"t_s": 2.6}])]).constraint == "ttft_max_s.chat"


def test_planned_rows_are_no_news():
    watch = Sequential(Goal(limits={"ttft_max_s": 2.0}))
    watch.begin(a_workload())
    assert watch.look([("requests", [{"request": "chat-0", "planned_s": 0.0}])]) is None


def test_a_goodput_that_cannot_beat_the_best_ends_a_trial():
    # Ten chats, the last at 4.5 s: all of them in time are 10 / 4.5 = 2.22 requests/s at most; one lost leaves 2.0.
    goal = Goal(slo=SLO(gap_ms=200, ttft_ms=1000))
    watch = Sequential(goal, beat=2.1)
    watch.begin(a_workload())
    assert watch.look(tokens(("chat-0", 0.1), ("chat-0", 0.2))) is None
    stop = watch.look(tokens(("chat-0", 0.5)))
    assert stop.reach == pytest.approx(2.0)
    assert stop.excess == 0.0


@pytest.mark.parametrize("rate", [-0.1, 0.5, float("nan")])
def test_an_error_rate_that_is_none_is_refused(rate):
    with pytest.raises(InputError, match="error_rate"):
        Sequential(Goal(), rate)
