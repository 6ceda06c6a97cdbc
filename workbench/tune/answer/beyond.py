"""What a limit costs: settings beyond it, played to their end, since the search stops those as soon as it is sure.

Without them nobody could say how much better the best would be without a limit, or by how much a limit is missed where
nothing is within all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from workbench.tune.answer.candidates import Candidate, candidates_of, ranked
from workbench.tune.goal import Goal
from workbench.tune.neighbours import distance
from workbench.tune.space import Space
from workbench.tune.trial import Asked, Player, Result, UntilStopped

_MOST = 3  # plays, where nothing is within the limits


def look_beyond(
    results: Sequence[Result],
    goal: Goal,
    space: Space,
    player: Player,
    *,
    tell: Callable[[Result], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> list[Result]:
    """Play stopped settings again, to their end and with the same seed.

    For each limit the one that broke it and is nearest to the best in the space; where nothing is within the limits,
    the three that went on for longest before it was sure.

    Args:
        results: of the search.
        goal: of the search.
        space: of the search.
        player: plays them; it is not closed.
        tell: told of every play.
        stopped: asked again and again; true ends it.

    Raises:
        WorkbenchError: nothing can be played any more.
    """
    number, played = max((one.number for one in results), default=-1) + 1, list[Result]()
    for one in chosen(candidates_of(results), goal, space):
        if stopped():
            break
        asked = Asked(number + len(played), one.point, one.plays[0].seed)
        result = player.play(asked, UntilStopped(stopped))
        if result.state == "interrupted":
            break
        played.append(result)
        if tell is not None:
            tell(result)
    return played


def chosen(candidates: Sequence[Candidate], goal: Goal, space: Space) -> list[Candidate]:
    """The settings to look at; none whose plays already went to an end."""
    cut = [one for one in candidates if one.broken and not one.complete]
    best = ranked(candidates, goal)
    if not best:
        if any(one.complete for one in candidates):
            return []  # how far they miss is known
        return sorted(cut, key=lambda one: -one.engine_s)[:_MOST]
    found: list[Candidate] = []
    for name in goal.limits:
        beyond = [one for one in cut if one.worst is not None and one.worst[0] == name]
        known = [one for one in candidates if one.complete and one.excess.get(name, 0.0) > 0]
        if beyond and not known:
            found.append(min(beyond, key=lambda one: distance(one.point, best[0].point, space)))
    return found
