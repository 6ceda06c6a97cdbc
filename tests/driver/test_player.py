"""When requests are sent, how many at once, and what becomes of those that are cancelled."""

from __future__ import annotations

import itertools

import pytest

from workbench.driver.play import item_of
from workbench.driver.player import Player
from workbench.errors import EngineError, InputError

_runs = itertools.count()


@pytest.fixture
def tag():
    """Keeps apart what the server notes of different tests."""
    return f"t{next(_runs)}"


def test_an_open_loop_sends_at_the_planned_times_and_measures_its_lag(driver, start, request_, patience, server, tag):
    times = [0.0, 0.05, 0.05, 0.2]
    names = [f"plain/{tag}/{i}" for i in range(4)]
    play, sink = start(driver, *(request_(name, at) for name, at in zip(names, times, strict=True)))
    assert play.wait(patience)
    rows, seen = sink.by_name, server.told()["seen"]
    assert [rows[name]["planned_s"] for name in names] == times
    assert all(rows[name]["sent_s"] >= rows[name]["planned_s"] for name in names)
    assert all(seen[name]["at"] - play.zero > rows[name]["sent_s"] for name in names)
    assert sorted(names, key=lambda name: rows[name]["sent_s"]) == names


def test_requests_out_of_order_are_sent_in_order(driver, start, request_, patience, tag):
    late, soon = f"plain/{tag}/late", f"plain/{tag}/soon"
    play, sink = start(driver, request_(late, 0.3), request_(soon, 0.0))
    assert play.wait(patience)
    assert sink.by_name[soon]["sent_s"] < 0.3 <= sink.by_name[late]["sent_s"]


@pytest.mark.parametrize("concurrency", [{}, {"late": 1}])
def test_requests_are_held_until_they_are_released(driver, start, request_, patience, server, tag, concurrency):
    soon, late = f"plain/{tag}/soon", f"plain/{tag}/late"
    requests = request_(soon), request_(late, 0.1, class_name="late")
    play, sink = start(driver, *requests, concurrency=concurrency, hold_s=0.1)
    assert not play.wait(0.5)
    assert soon in server.told()["seen"]
    assert late not in server.told()["seen"]
    play.release()
    assert play.wait(patience)
    assert sink.by_name[late]["planned_s"] == 0.1, "how long it was held is its schedule lag"
    assert sink.by_name[late]["sent_s"] > 0.4


def test_a_play_that_holds_requests_can_be_cancelled(driver, start, request_, patience, tag):
    play, sink = start(driver, request_(f"plain/{tag}", 0.1), hold_s=0.0)
    play.cancel()
    assert play.wait(patience)
    assert sink.by_name[f"plain/{tag}"]["status"] == "cancelled"


def test_fixed_concurrency_sends_the_next_when_one_ends(driver, start, request_, patience, tag):
    requests = [request_(f"plain/{tag}/{i}", 0.1, class_name="steady") for i in range(9)]
    play, sink = start(driver, *requests, concurrency={"steady": 3})
    assert play.wait(patience)
    rows = sorted(sink.requests, key=lambda row: row["planned_s"])
    assert [row["status"] for row in rows] == ["ok"] * 9
    assert [row["planned_s"] for row in rows[:3]] == [0.1] * 3
    ends = sorted(row["done_s"] for row in rows)
    assert [row["planned_s"] for row in rows[3:]] == ends[:6]  # to the bit: the moment that one ended
    events = sorted([(row["sent_s"], 1) for row in rows] + [(row["done_s"], -1) for row in rows])
    assert max(itertools.accumulate(change for _, change in events)) == 3


def test_fixed_concurrency_and_open_loop_together(driver, start, request_, patience, tag):
    closed = [request_(f"plain/{tag}/c{i}", class_name="closed") for i in range(3)]
    opened = [request_(f"plain/{tag}/o{i}", 0.02 * i) for i in range(3)]
    play, sink = start(driver, *closed, *opened, concurrency={"closed": 1, "empty": 2})
    assert play.wait(patience)
    assert len(sink.by_name) == 6
    assert {row["status"] for row in sink.requests} == {"ok"}


def test_a_failed_request_frees_its_place(driver, start, request_, patience, tag):
    play, sink = start(
        driver,
        *(request_(f"{script}/{tag}", class_name="c") for script in ("crash", "reset", "plain")),
        concurrency={"c": 1},
    )
    assert play.wait(patience)
    assert [row["status"] for row in sink.requests] == ["error", "error", "ok"]


def test_add_plays_one_more_now(driver, start, request_, patience, tag):
    play, sink = start(driver, request_(f"steady/50/10/{tag}", tokens=50))
    assert sink.first_token.wait(patience)
    play.add(request_(f"plain/{tag}", arrival_s=1e6))
    with pytest.raises(InputError, match="a name that the play does not have yet"):
        play.add(request_(f"plain/{tag}"))
    assert play.wait(patience)
    added = sink.by_name[f"plain/{tag}"]
    assert added["status"] == "ok"
    assert 0.0 < added["planned_s"] <= added["sent_s"]
    with pytest.raises(EngineError, match="after the end"):
        play.add(request_(f"plain/{tag}/late"))


def test_cancel_at_once_sends_nothing(driver, start, request_, patience, server, tag):
    names = [f"plain/{tag}/{i}" for i in range(50)]
    play, sink = start(driver, *(request_(name, 1.0) for name in names))
    play.cancel()
    assert play.wait(patience)
    assert {row["status"] for row in sink.requests} == {"cancelled"}
    assert {row["sent_s"] for row in sink.requests} == {None}
    assert {row["planned_s"] for row in sink.requests} == {1.0}
    assert set(sink.by_name) == set(names)
    assert not set(names) & set(server.told()["seen"])


def test_cancel_in_mid_run_keeps_what_was_measured(driver, start, request_, patience, tag):
    on, later, queued = f"silent/{tag}", f"plain/{tag}/later", f"silent/{tag}/queued"
    requests = [request_(on, class_name="c"), request_(queued, class_name="c"), request_(later, 3600.0)]
    play, sink = start(driver, *requests, concurrency={"c": 1})
    assert sink.first_token.wait(patience)
    assert not play.wait(0.01)
    assert play.in_flight == 1
    play.cancel()
    play.cancel()
    assert play.wait(patience)
    rows = sink.by_name
    assert {name: row["status"] for name, row in rows.items()} == dict.fromkeys((on, later, queued), "cancelled")
    assert rows[on]["output_tokens"] == 1 == len(sink.tokens)
    assert rows[on]["sent_s"] < rows[on]["first_s"] < rows[on]["done_s"]
    assert rows[later]["sent_s"] is rows[queued]["sent_s"] is None
    assert play.in_flight == 0


def test_cancel_after_the_end_does_nothing(driver, start, request_, patience, tag):
    play, sink = start(driver, request_(f"plain/{tag}"))
    assert play.wait(patience)
    play.cancel()
    assert play.wait(0)
    assert [row["status"] for row in sink.requests] == ["ok"]


def test_a_thousand_requests_cancelled_at_once(driver, start, request_, patience, tag):
    names = [f"silent/{tag}/{i}" for i in range(1000)]
    play, sink = start(driver, *(request_(name) for name in names))
    assert sink.first_token.wait(patience)
    play.cancel()
    assert play.wait(patience)
    assert set(sink.by_name) == set(names)
    assert {row["status"] for row in sink.requests} == {"cancelled"}
    counted = {row["request"]: row["output_tokens"] for row in sink.requests}
    assert sum(counted.values()) == len(sink.tokens) > 0


def test_one_play_at_a_time_and_the_next_after_it(driver, start, request_, patience, tag):
    first, one = start(driver, request_(f"silent/{tag}"))
    with pytest.raises(EngineError, match="one at a time"):
        start(driver, request_(f"plain/{tag}"))
    first.cancel()
    assert first.wait(patience)
    second, two = start(driver, request_(f"plain/{tag}"))
    assert second.wait(patience)
    assert [row["request"] for row in one.requests] == [f"silent/{tag}"]
    assert [(row["request"], row["status"]) for row in two.requests] == [(f"plain/{tag}", "ok")]
    assert len(two.tokens) == 4


def test_an_empty_workload_ends(driver, start, patience):
    play, sink = start(driver)
    assert play.wait(patience)
    assert sink.requests == sink.tokens == []


def test_long_prompts_do_not_delay_the_first_arrival(driver, start, request_, patience, server, tag):
    long = tuple(range(100_000))
    names = [f"plain/{tag}/{i}" for i in range(8)]
    play, sink = start(driver, *(request_(name, prompt=long) for name in names))
    assert play.wait(patience)
    assert {row["prompt_tokens"] for row in sink.requests} == {100_000}
    assert server.told()["seen"][names[7]]["body"]["prompt"] == list(long)


@pytest.mark.asyncio
async def test_a_fault_of_the_player_itself_ends_the_play_and_is_raised(request_):
    reports = []
    player = Player(None, None, 1, [item_of(request_("a")), item_of(request_("b", 3600.0))], reports.append)
    with pytest.raises(AttributeError):  # no target: a request cannot even be written
        await player.run(0.0, {})
    rows = [row for report in reports for row in report.requests]
    assert {row.request for row in rows} == {"a", "b"}
