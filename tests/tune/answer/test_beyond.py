"""Settings beyond a limit, played to their end, on made-up results."""

from __future__ import annotations

from made_results import MadeUpPlayer, result

from workbench.config import EngineConfig
from workbench.tune.answer.answer import Answer
from workbench.tune.answer.beyond import chosen, look_beyond
from workbench.tune.answer.candidates import candidates_of
from workbench.tune.goal import Goal
from workbench.tune.space import Space

GOAL = Goal(("goodput",), {"gap_p99_ms": 200, "ttft_p99_s": 2.0})
SPACE = Space({"budget": (64, 128, 256, 512, 1024), "chunk": (0,)}, EngineConfig())


def cut(number, budget, name="gap_p99_ms", over=0.1, **more):
    return result(number, {"budget": budget, "chunk": 0}, state="stopped", excess={name: over}, **more)


SEARCH = [
    result(0, {"budget": 128, "chunk": 0}, 2.0, seed=3),
    cut(1, 1024, seed=3),
    cut(2, 512, over=0.5, seed=3),
    cut(3, 64, name="ttft_p99_s", seed=3),
    cut(4, 256, over=-0.5, seed=3),  # stopped since others are better: it is beyond nothing
]


def test_the_nearest_beyond_each_limit_is_played_to_its_end_with_the_same_seed():
    player = MadeUpPlayer(lambda point, seed: (3.0, 260.0))
    played = look_beyond(SEARCH, GOAL, SPACE, player)
    assert [(one.number, one.point.hot["budget"], one.seed) for one in player.asked] == [(5, 512, 3), (6, 64, 3)]
    words = Answer.of([*SEARCH, *played], GOAL).limits[0].words
    assert words.endswith("it binds: budget 512 chunk off would be 50.0% better and misses it by 50%")


def test_a_limit_whose_cost_is_known_already_is_not_looked_beyond():
    known = [*SEARCH, result(5, {"budget": 512, "chunk": 0}, 3.0, gap=250.0)]
    assert [one.point.hot["budget"] for one in chosen(candidates_of(known), GOAL, SPACE)] == [64]


def test_where_nothing_is_within_the_limits_those_that_went_on_for_longest_say_by_how_much():
    search = [cut(n, budget, engine_s=float(n)) for n, budget in enumerate((64, 128, 256, 512, 1024))]
    player = MadeUpPlayer(lambda point, seed: (1.0, 1.0 * point.hot["budget"]))
    played = look_beyond(search, GOAL, SPACE, player)
    assert [one.point.hot["budget"] for one in player.asked] == [1024, 512, 256]
    assert (
        "gap_p99_ms binds, with 256 where 200 is allowed (28% above), at the nearest, budget 256 chunk off"
        in (Answer.of([*search, *played], GOAL).words[0])
    )
    assert chosen(candidates_of([*search, *played]), GOAL, SPACE) == []


def test_it_ends_when_somebody_stops_it():
    assert look_beyond(SEARCH, GOAL, SPACE, MadeUpPlayer(None), stopped=lambda: True) == []
