"""When a rate counts as met, on plays made by hand; and the moment at which a play has failed."""

from __future__ import annotations

import pytest

from workbench.config import SLO
from workbench.planning.rule import Rule, judge
from workbench.planning.watch import Watch, as_of
from workbench.simulate.job import Ask
from workbench.trace import TABLES, Trace, table_of

PROMISE = SLO(ttft_ms=1000, gap_ms=200)


def play(ttft, gap=lambda i: 0.05, count=100, last=2, status=lambda i: "ok"):
    """One request a second, each of three tokens; ``ttft(i)`` and the longest gap of request i, s. SYNTHETIC."""
    tables = {name: [] for name in TABLES}
    for i in range(count):
        first = i + ttft(i)
        at = [first, first + gap(i), first + gap(i) + 0.05]
        tables["tokens"] += [{"request": f"r{i}", "index": n, "n": 1, "engine_s": at[n]} for n in range(3)]
        ends = {"first_s": first, "last_s": at[-1], "done_s": at[-1], "status": status(i), "output_tokens": 3}
        tables["requests"].append({"request": f"r{i}", "class": "even" if i % 2 == 0 else "odd", "planned_s": float(i),
                                   "prompt_tokens": 10} | ends)  # fmt: skip
    return Trace({name: table_of(name, rows) for name, rows in tables.items()}, {"label": "simulated"})


def test_only_the_middle_counts():
    # Planned at 0..99 s: counted from 24.75 to 89.1 s, which are the requests 25 to 89.
    found = judge(play(lambda i: 0.1 if 25 <= i <= 89 else 5.0), 1.0, PROMISE, Rule())
    assert (found.met, found.share, found.requests) == (True, 1.0, 65)
    assert found.residence_s == pytest.approx(0.2)
    assert found.misses == "none missed"


def test_the_share_that_meets_both_parts_of_the_slo_decides():
    late = judge(play(lambda i: 1.2 if i in (30, 40, 50) else 0.1), 1.0, PROMISE, Rule())
    assert (late.met, late.late) == (True, pytest.approx(3 / 65)), "3 of 65 are less than 5 %"
    both = play(lambda i: 1.2 if i in (30, 40, 50) else 0.1, lambda i: 0.3 if i == 61 else 0.05)
    found = judge(both, 1.0, PROMISE, Rule())
    assert (found.met, found.share) == (False, pytest.approx(61 / 65))
    assert found.misses == "TTFT late for 5%, gap too long for 2%"
    assert found.worst == ("even", pytest.approx(1 - 3 / 32)), "26, 28, ... 88 are 32"
    assert judge(both, 1.0, PROMISE, Rule(share=0.9)).met


def test_requests_that_end_with_an_error_miss():
    found = judge(play(lambda i: 0.1, status=lambda i: "error" if i % 10 == 0 else "ok"), 1.0, PROMISE, Rule())
    assert (found.met, found.failed) == (False, pytest.approx(6 / 65)), "30, 40, ... 80"


@pytest.mark.parametrize(("growth", "met"), [(0.04, True), (0.06, False)])
def test_a_wait_that_grows_is_more_than_is_served_even_within_a_generous_slo(growth, met):
    found = judge(play(lambda i: 0.1 + growth * i), 1.0, SLO(ttft_ms=60_000), Rule())
    assert (found.met, found.share) == (met, 1.0)
    assert found.growth == pytest.approx(growth, rel=1e-6)


def test_a_play_is_as_long_as_requests_stay():
    assert Rule().count(rate=1.0, residence_s=2.0) == 231, "150 are counted, of 65 %"
    assert Rule().count(rate=100.0, residence_s=2.0) == 924, "three times two seconds at 100/s"
    assert Rule(most=500).count(rate=100.0, residence_s=2.0) == 500
    assert Rule().count(rate=0.01, residence_s=2.0) == 62, "one at a time: 40 are enough"


def asks(count=100):
    return [Ask(f"r{i}", "chat", 1, float(i), 10, 3) for i in range(count)]


def fed(trace, every_s, promise=PROMISE):
    """A watch that is told of a play in pieces, until it has failed."""
    watch = Watch(asks(), promise, Rule())
    tokens, now = trace.tokens.sort_values("engine_s"), 0.0
    while now < 200:
        new = tokens[(tokens["engine_s"] > now) & (tokens["engine_s"] <= now + every_s)]
        now += every_s
        if watch.look(table_of("tokens", new[["request", "engine_s"]].to_dict("records")), now):
            break
    return watch


def test_a_play_has_failed_at_the_miss_that_is_one_too_many_whenever_somebody_looks():
    trace = play(lambda i: 0.1 if i < 40 else 9.0)  # those from 40 on are overdue one second after they arrived
    assert {fed(trace, step).failed_s for step in (0.5, 3.0, 200.0)} == {44.0}, "4 = 3 of 65 + 1: 40, 41, 42, 43"
    gaps = play(lambda i: 0.1, lambda i: 0.3 if i % 10 == 0 else 0.05)
    at = {round(fed(gaps, step).failed_s, 6) for step in (0.5, 3.0, 200.0)}
    assert at == {60.4}, "30, 40, 50 and 60"


def test_a_play_that_is_met_is_never_given_up():
    assert fed(play(lambda i: 0.1 if 25 <= i <= 89 else 5.0), 1.0).failed_s is None
    percentile = SLO(ttft_ms=1000, gap_ms=200, gap_percentile=90)
    assert fed(play(lambda i: 0.1, lambda i: 0.3), 1.0, percentile).failed_s is None, "known only at the end"


def test_what_was_known_at_a_moment_does_not_depend_on_what_came_later():
    short, long = play(lambda i: 0.1 if i < 40 else 9.0, count=100), play(lambda i: 0.1 if i < 40 else 30.0, count=100)
    found = [judge(as_of(one, 44.0), 1.0, PROMISE, Rule(), cut_s=44.0) for one in (short, long)]
    assert found[0] == found[1]
    assert (found[0].met, found[0].requests, found[0].share) == (False, 19, pytest.approx(15 / 19)), "25 to 43"
    assert found[0].misses == "TTFT late for 21%, given up after 19 requests"
