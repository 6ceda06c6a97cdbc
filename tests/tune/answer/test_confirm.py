"""The confirmation on a player whose figures are known."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from made_results import MadeUpPlayer, result

from workbench.tune.answer.confirm import Confirmation, confirm, fresh_seeds
from workbench.tune.goal import Goal

GOAL = Goal(("goodput",), {"gap_p99_ms": 200})
SEARCH = [
    result(0, {"budget": 64}, 1.0, seed=3),
    result(1, {"budget": 128}, 2.0, seed=3),
    result(2, {"budget": 256}, 3.0, seed=5),
    result(3, {"budget": 512}, 9.0, gap=400.0, seed=3),
]


def test_the_two_best_play_the_same_fresh_seeds_and_the_winner_is_the_answer():
    def figures(point, seed):  # the search was lucky with 256: 128 is better on every seed, by 10 %, 20 % and 30 %
        return (1.0 + 0.1 * (seed - 5), 100.0) if point.hot["budget"] == 128 else (1.0, 100.0)

    player = MadeUpPlayer(figures)
    found = confirm(SEARCH, GOAL, player, rounds=3)
    assert [one.seed for one in player.asked] == [6, 6, 7, 7, 8, 8]
    assert {one.point.hot["budget"] for one in player.asked} == {128, 256}
    assert [one.number for one in player.asked] == [4, 5, 6, 7, 8, 9]
    assert found.winner.name == "budget 128"
    # shares 0.1, 0.2, 0.3: mean 0.2, s = 0.1, so 0.2 +- 4.3027 * 0.1 / sqrt(3) = 0.2 +- 0.2484
    assert (found.lead.mean, found.lead.low, found.lead.high) == pytest.approx((0.2, -0.0484, 0.4484), abs=1e-4)
    assert found.words == (
        "budget 128 met all limits in 3 of 3 fresh plays; no difference to budget 256 shown "
        "(+20.0%, 95 % interval -4.8% to +44.8%)"
    )


def test_a_difference_that_is_shown_is_said():
    player = MadeUpPlayer(lambda point, seed: (2.0 if point.hot["budget"] == 256 else 1.0, 100.0))
    assert ", better than budget 128 (+100.0%, " in confirm(SEARCH, GOAL, player).words


def test_one_that_breaks_a_limit_is_out_and_the_next_takes_its_place():
    def figures(point, seed):
        return (3.0, 240.0) if (point.hot["budget"], seed) == (256, 7) else (2.0, 100.0)

    player = MadeUpPlayer(figures)
    found = confirm(SEARCH, GOAL, player, rounds=2)
    budgets = [one.point.hot["budget"] for one in player.asked]
    assert budgets.count(128) == budgets.count(64) == 2
    assert {one.name for one in found.standing} == {"budget 64", "budget 128"}
    assert found.words.endswith("; out: budget 256 (gap_p99_ms 20% above)")


def test_where_none_stands_nothing_is_recommended():
    found = confirm(SEARCH, GOAL, MadeUpPlayer(lambda point, seed: (3.0, 300.0)))
    assert found.winner is None
    assert len(found.results) == 3, "each is out after its first play"
    assert found.words.startswith("not confirmed: on fresh seeds every setting broke a limit: ")
    assert confirm(SEARCH[3:], GOAL, MadeUpPlayer(None)).words == (
        "not confirmed: the search found no setting within the limits"
    )


def test_plays_that_failed_are_no_broken_limit():
    class Dying(MadeUpPlayer):
        def play(self, asked, watch=None):
            return result(asked.number, dict(asked.point.hot), state="failed", seed=asked.seed, error="engine: it died")

    found = confirm(SEARCH, GOAL, Dying(None))
    assert (found.winner, found.fallen) == (None, [])
    assert found.words == "not confirmed: none of 3 fresh plays was measured; the first said: engine: it died"


def test_settings_with_engines_of_their_own_are_played_one_engine_after_the_other():
    search = [*SEARCH, result(4, {"budget": 256}, 4.0, start_up={"block_size": 32})]
    player = MadeUpPlayer(lambda point, seed: (3.0, 100.0))
    confirm(search, GOAL, player, rounds=3)
    starts = [dict(one.point.start_up) for one in player.asked]
    assert len(starts) == 6
    assert sum(one != other for one, other in itertools.pairwise(starts)) == 1


def test_one_that_is_stopped_confirms_nothing_and_comes_back_from_plain_data():
    told = []
    found = confirm(
        SEARCH, GOAL, MadeUpPlayer(lambda point, seed: (2.0, 100.0)), tell=told.append, stopped=lambda: len(told) > 2
    )
    assert (len(found.results), found.winner, found.words) == (3, None, "not confirmed: it was stopped")
    assert Confirmation.of_dict(found.as_dict(), GOAL) == found


def test_fresh_seeds_are_none_of_the_searchs():
    assert fresh_seeds(SEARCH, 3) == [6, 7, 8]


def a_landscape(point, seed):
    return ({64: 1.0, 128: 2.0, 256: 3.0}[point.hot["budget"]] + seed / 100, 100.0)


def test_what_an_earlier_session_played_is_not_played_again():
    whole = confirm(SEARCH, GOAL, MadeUpPlayer(a_landscape))
    player = MadeUpPlayer(a_landscape)
    assert confirm(SEARCH, GOAL, player, had=whole.results) == whole
    assert not player.asked
    assert len(confirm(SEARCH, GOAL, player, had=whole.results, rounds=2).results) == 4
    assert not player.asked
    more = confirm(SEARCH, GOAL, player, had=whole.results, rounds=4)
    assert more.results[:6] == whole.results
    assert [(one.number, one.seed) for one in player.asked] == [(10, 9), (11, 9)]


@pytest.mark.parametrize(("kept", "played"), [(0, 6), (1, 6), (2, 4), (3, 4), (4, 2), (5, 2)])
def test_one_that_was_cut_goes_on_with_the_round_that_it_was_in(kept, played):
    whole = confirm(SEARCH, GOAL, MadeUpPlayer(a_landscape))
    player = MadeUpPlayer(a_landscape)
    cut = replace(whole.results[kept], state="interrupted", objectives=(), excess={})
    assert confirm(SEARCH, GOAL, player, had=[*whole.results[:kept], cut]) == whole
    assert len(player.asked) == played


def test_plays_of_other_settings_do_not_count():
    before = confirm(SEARCH, GOAL, MadeUpPlayer(a_landscape))
    player = MadeUpPlayer(lambda point, seed: (5.0, 100.0))
    search = [*SEARCH, result(4, {"budget": 1024}, 4.0, seed=3)]
    found = confirm(search, GOAL, player, had=before.results)
    assert {one.point.hot["budget"] for one in player.asked} == {256, 1024}
    assert len(player.asked) == len(found.results) == 6
