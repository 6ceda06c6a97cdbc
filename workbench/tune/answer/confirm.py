"""The confirmation: the best setting of a search against its runner-up, on seeds that the search never saw.

A search picks the luckiest play among equals. So the pick is played again beside the next one, the same fresh seeds for
both in an order drawn by chance, and the answer is what wins this. A setting that breaks a limit here is out, and the
next one takes its place.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

from workbench.i18n import phrase, phrases
from workbench.tune.answer.candidates import Candidate, Interval, candidates_of, ranked
from workbench.tune.goal import Goal
from workbench.tune.trial import Asked, Player, Point, Result, UntilStopped

ROUNDS = 3
_POOL = 5  # settings of a search that may come to be played
_PAIR = 2


@dataclass(frozen=True)
class Confirmation:
    """What a confirmation has found.

    Attributes:
        goal: of the study.
        results: all plays, in their order.
        rounds: plays that a setting needs.
        ended: whether it went to its end; somebody may have stopped it.
    """

    goal: Goal
    results: tuple[Result, ...]
    rounds: int
    ended: bool = True

    @property
    def candidates(self) -> list[Candidate]:
        """The settings that were played."""
        return candidates_of(self.results)

    @property
    def standing(self) -> list[Candidate]:
        """Those that met all limits in every round, the best first."""
        return [one for one in ranked(self.candidates, self.goal) if len(one.complete) >= self.rounds]

    @property
    def fallen(self) -> list[Candidate]:
        """Those that broke a limit."""
        return [one for one in self.candidates if not one.feasible]

    @property
    def winner(self) -> Candidate | None:
        """The setting to recommend; None where it did not come to its end, or no setting met the limits."""
        return self.standing[0] if self.ended and self.standing else None

    @property
    def lead(self) -> Interval | None:
        """By which share the winner is better than the one behind it, seed by seed; None without two to compare."""
        if len(self.standing) < _PAIR or not self.ended:
            return None
        first, second = ({one.seed: one for one in some.complete} for some in self.standing[:_PAIR])
        maximize = self.goal.aims[0].direction == "maximize"
        shares = []
        for seed in first.keys() & second.keys():
            mine, theirs = first[seed].objectives[0], second[seed].objectives[0]
            if theirs:
                shares.append((mine - theirs) / abs(theirs) if maximize else (theirs - mine) / abs(theirs))
        return Interval.of(sorted(shares)) if shares else None

    @property
    def words(self) -> str:
        """In a sentence."""
        winner, lead = self.winner, self.lead
        if winner is None:
            return phrase("not confirmed: it was stopped") if not self.ended else self._none_stood()
        said = phrase(
            "{name} met all limits in {complete} of {complete} fresh plays",
            name=winner.name,
            complete=len(winner.complete),
        )
        if lead is not None:
            second = self.standing[1].name
            sure = phrase(
                "{mean:+.1%}, 95 % interval {low:+.1%} to {high:+.1%}", mean=lead.mean, low=lead.low, high=lead.high
            )
            said += (
                phrase(", better than {second} ({sure})", second=second, sure=sure)
                if lead.low > 0
                else phrase("; no difference to {second} shown ({sure})", second=second, sure=sure)
            )
        out = phrases(", ", [phrase("{name} ({missed})", name=one.name, missed=_missed(one)) for one in self.fallen])
        return said + (phrase("; out: {out}", out=out) if out else "")

    def _none_stood(self) -> str:
        out = phrases(", ", [phrase("{name} ({missed})", name=one.name, missed=_missed(one)) for one in self.fallen])
        if out:
            return phrase("not confirmed: on fresh seeds every setting broke a limit: {out}", out=out)
        if self.results:  # what failed is no candidate
            errors = [one.error for one in self.results if one.error]
            said = phrase("; the first said: {error}", error=errors[0]) if errors else ""
            return phrase("not confirmed: none of {n} fresh plays was measured{said}", n=len(self.results), said=said)
        return phrase("not confirmed: the search found no setting within the limits")

    def as_dict(self) -> dict[str, Any]:
        """Plain data, with the words and the interval for those who only read it."""
        lead = self.lead
        return {
            "rounds": self.rounds,
            "ended": self.ended,
            "results": [one.as_dict() for one in self.results],
            "winner": self.winner.name if self.winner is not None else None,
            "lead": {"mean": lead.mean, "low": lead.low, "high": lead.high, "plays": lead.plays} if lead else None,
            "words": self.words,
        }

    @classmethod
    def of_dict(cls, facts: Mapping[str, Any], goal: Goal) -> Self:
        """Take it from what :meth:`as_dict` gave."""
        results = tuple(Result.of_dict(one) for one in facts["results"])
        return cls(goal, results, int(facts["rounds"]), bool(facts["ended"]))


def confirm(
    results: Sequence[Result],
    goal: Goal,
    player: Player,
    *,
    rounds: int = ROUNDS,
    had: Sequence[Result] = (),
    tell: Callable[[Confirmation], None] | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Confirmation:
    """Play the best setting and the runner-up of a search again, on fresh seeds.

    Where the two differ in a start-up field, one is played to its end before the other, so that each engine starts
    once; else they take turns.

    Args:
        results: of the search.
        goal: of the search.
        player: plays them; it is not closed.
        rounds: plays of each.
        had: plays of an earlier session, in their order; they count where they are those that this one begins with.
        tell: told after every play here, with what there is by then.
        stopped: asked again and again; true ends it, and nothing is confirmed.

    Raises:
        WorkbenchError: nothing can be played any more.
    """
    pool = ranked(candidates_of(results), goal)[:_POOL]
    seeds = fresh_seeds(results, rounds)
    number = max((one.number for one in results), default=-1) + 1
    played = [replace(one, number=number + place) for place, one in enumerate(_still_good(pool, had, seeds))]
    while (due := _due(pool, played, seeds)) is not None:
        if stopped():
            return Confirmation(goal, tuple(played), rounds, ended=False)
        point, seed = due
        played.append(player.play(Asked(number + len(played), point, seed), UntilStopped(stopped)))
        if played[-1].state == "interrupted":
            return Confirmation(goal, tuple(played), rounds, ended=False)
        if tell is not None:
            tell(Confirmation(goal, tuple(played), rounds, ended=False))
    return Confirmation(goal, tuple(played), rounds)


def fresh_seeds(results: Sequence[Result], count: int) -> list[int]:
    """Seeds that no play of the search had, the same for the same search."""
    first = max((one.seed for one in results), default=0) + 1
    return list(range(first, first + count))


def _still_good(pool: Sequence[Candidate], had: Sequence[Result], seeds: Sequence[int]) -> list[Result]:
    """What an earlier session played, as far as this one would; nothing where it confirmed other settings.

    A round of which one side was played is played again: its two plays would be of different sessions.
    """
    kept: list[Result] = []
    for one in had:
        if one.state == "interrupted":
            break
        due = _due(pool, kept, seeds)
        if due is None:  # it had more rounds
            return kept
        if (one.point.key, one.seed) != (due[0].key, due[1]):
            return []
        kept.append(one)
    due = _due(pool, kept, seeds)
    if due is not None and kept and kept[-1].seed == due[1] and kept[-1].feasible:
        kept.pop()
    return kept


def _due(pool: Sequence[Candidate], played: Sequence[Result], seeds: Sequence[int]) -> tuple[Point, int] | None:
    """What to play next: the first seed that one of the two who stand has not had; None when both had all."""
    out = {one.point.key for one in played if not one.feasible}
    pair = [one.point for one in pool if one.point.key not in out][:_PAIR]
    had = {(one.point.key, one.seed) for one in played}
    open_ = [(point, seed) for seed in seeds for point in pair if (point.key, seed) not in had]
    if not open_:
        return None
    if len(pair) == _PAIR and pair[0].start_up != pair[1].start_up:
        held = played[-1].point.start_up if played else open_[0][0].start_up
        return min(open_, key=lambda one: one[0].start_up != held)
    seed = open_[0][1]
    turns = random.Random(f"turns {seed}")  # noqa: S311  not a secret, and the same for a session that goes on with it
    return turns.choice([one for one in open_ if one[1] == seed])


def _missed(one: Candidate) -> str:
    worst = one.worst
    if worst is None or worst[1] <= 0:
        return phrase("not played to its end")
    return (
        phrase("{worst} {over:.0%} above", worst=worst[0], over=worst[1])
        if worst[0] != "failed requests"
        else phrase("{worst:.0%} of requests failed", worst=worst[1])
    )
