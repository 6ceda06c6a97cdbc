from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.ui.live.thinner import Thinner

SERIES = ("a", "b")
VALUE = st.one_of(st.none(), st.floats(0, 100))
OFFER = st.tuples(st.floats(0, 2), VALUE, VALUE, st.integers(1, 3))  # seconds since the one before, a, b, weight


def offers(data):
    """Time, values, name and weight of each offer; times do not fall."""
    now, made = 0.0, []
    for place, (later, a, b, weight) in enumerate(data):
        now += later
        values = {name: value for name, value in zip(SERIES, (a, b), strict=True) if value is not None}
        made.append((now, values, place, weight))
    return made


def kept(thinner):
    return set(thinner.groups())


@given(st.lists(OFFER, max_size=200), st.integers(16, 40), st.floats(1, 50))
def test_bound_maxima_and_changes(data, limit, window_s):
    thinner = Thinner(limit, series=2, weight=3)
    seen, shown, widest = [], set(), 0.0
    for now, values, place, weight in offers(data):
        thinner.offer(now, values, place, weight)
        seen.append((now, values, place, weight))
        assert len(thinner) <= limit
        widest = max(widest, thinner.width_s)
        if place % 3 == 0:
            thinner.trim(now - window_s)
            drained = thinner.drain()
            assert shown >= set(drained.dropped)
            assert not shown & set(drained.added)
            shown = (shown - set(drained.dropped)) | set(drained.added)
            assert shown == kept(thinner)
            inside = [offer for offer in seen if offer[0] >= now - window_s]
            assert shown <= {offer[2] for offer in inside}
            assert len(thinner) == sum(offer[3] for offer in inside if offer[2] in shown)
            check_maxima(kept(thinner), inside, now - window_s, widest)


def check_maxima(there, inside, since, width):
    """In every bucket that lies in the window, the largest of each series is there; without buckets, everything is."""
    for name in SERIES:
        buckets = {}
        for now, values, place, _ in inside:
            bucket = math.floor(now / width) if width else place
            if name in values and (not width or bucket * width >= since):
                buckets.setdefault(bucket, []).append((values[name], place))
        for rows in buckets.values():
            top = max(value for value, _ in rows)
            assert any(value == top and place in there for value, place in rows)


@given(st.lists(OFFER, max_size=12))
def test_what_fits_is_all_kept(data):
    thinner = Thinner(36, series=2, weight=3)
    made = offers(data)
    for now, values, place, weight in made:
        thinner.offer(now, values, place, weight)
    assert list(thinner.groups()) == [place for _, values, place, _ in made if values]
    assert thinner.width_s == 0
    assert thinner.drain().added == list(thinner.groups())


def test_a_spike_among_very_many_stays_until_it_leaves_the_window():
    thinner = Thinner(100)
    for n in range(50_000):
        thinner.offer(n * 0.01, {"gap": 900.0 if n == 31_234 else 30.0 + n % 7}, n)
        thinner.trim(n * 0.01 - 300)
    assert 31_234 in kept(thinner)
    assert thinner.largest("gap") == 900.0
    thinner.trim(312.35)
    assert 31_234 not in kept(thinner)
    assert thinner.largest("gap") == 36.0


def test_what_came_and_went_unseen_is_in_neither_list():
    thinner = Thinner(4)
    for n in range(5):
        thinner.offer(0.0, {"v": n}, n)  # one moment: only the largest can stay
    drained = thinner.drain()
    assert (drained.added, drained.dropped) == ([4], [])
    thinner.offer(0.0, {"v": 9}, 9)
    drained = thinner.drain()
    assert (drained.added, drained.dropped) == ([9], [4])


def test_buckets_get_finer_when_the_load_falls():
    thinner = Thinner(100)
    for n in range(1000):
        thinner.offer(n * 0.01, {"v": 1.0}, n)
    assert thinner.width_s > 0.05
    for second in range(20):
        thinner.trim(10.0 + second)
    assert thinner.width_s == 0.0
    for n in range(50):
        thinner.offer(40 + n * 0.01, {"v": 1.0}, 2000 + n)
    assert len(kept(thinner)) == 50


def test_a_long_thing_stays_until_its_end_has_left():
    thinner = Thinner(10)
    thinner.offer(1.0, {"v": 1.0}, "step of 9 s", until_s=10.0)
    thinner.trim(9.9)
    assert kept(thinner) == {"step of 9 s"}
    thinner.trim(10.1)
    assert kept(thinner) == set()
    thinner.offer(5.0, {"v": 1.0}, "late news of before the window")
    assert kept(thinner) == set()


def test_clear_drops_all():
    thinner = Thinner(4)
    for n in range(5):
        thinner.offer(n, {"v": n}, n)
    before = thinner.drain().added
    thinner.clear()
    assert sorted(thinner.drain().dropped) == sorted(before)
    assert len(thinner) == 0
    thinner.offer(4.0, {"v": 0.0}, "small")  # nothing of before stands in its way
    assert kept(thinner) == {"small"}


def test_a_limit_without_room_is_refused():
    with pytest.raises(ValueError, match="no room for 3 series with groups of 5 rows"):
        Thinner(30, series=3, weight=5)
