"""What limits the answer: which limit binds and by how much, what the engine is busy with, and why nothing fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from workbench.errors import StoreError, WorkbenchError
from workbench.i18n import phrase, phrase_counted, phrases
from workbench.planning.step_facts import step_facts, used_up
from workbench.store import open_run
from workbench.tune.answer.candidates import Candidate, gain, measured
from workbench.tune.goal import FAILED, Goal
from workbench.tune.trial import Result


@dataclass(frozen=True)
class Binding:
    """A limit of the goal, seen from the best setting.

    Attributes:
        constraint: its name.
        limit: its value; None of failed requests, of which there must be none.
        measured: the worst play of the best setting.
        excess: the same over the limit, minus 1; below 0 is met, and near 0 is near the limit.
        beyond: a better setting that only a wider limit would allow, by its name; the best of these.
        gain: by which share the objective would be better there.
        misses: by which share that one exceeds the limit.
    """

    constraint: str
    limit: float | None
    measured: float
    excess: float
    beyond: str | None = None
    gain: float | None = None
    misses: float | None = None

    @property
    def binds(self) -> bool:
        """Whether the objective would be better without it."""
        return self.beyond is not None

    @property
    def words(self) -> str:
        """One sentence."""
        said = phrase(
            "{constraint} is {amount}", constraint=self.constraint, amount=_amount(self.constraint, self.measured)
        )
        if self.limit is not None:
            said += phrase(
                " of {limit:g} allowed ({excess:.0%} {which})",
                limit=self.limit,
                excess=abs(self.excess),
                which=phrase("below") if self.excess <= 0 else phrase("above"),
            )
        if self.beyond is not None and self.gain is not None and self.misses is not None:
            said += phrase(
                "; it binds: {beyond} would be {gain:.1%} better and misses it by {misses:.0%}",
                beyond=self.beyond,
                gain=self.gain,
                misses=self.misses,
            )
        return said

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**asdict(self), "binds": self.binds, "words": self.words}


@dataclass(frozen=True)
class Nothing:
    """Why no setting is within the limits.

    Attributes:
        constraint: the one that binds; empty where each is met by some setting, and none meets all.
        by: its excess at the setting that comes nearest.
        nearest: that setting's name; where they clash, the one that misses least.
        words: all of it in a sentence.
    """

    constraint: str
    by: float
    nearest: str
    words: str

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)


def bindings(candidates: Sequence[Candidate], best: Candidate, goal: Goal) -> list[Binding]:
    """Every limit as the best setting sees it: those that bind first, then the nearest.

    A limit binds where a setting that was played is better in the first objective, and this limit is the one that it
    exceeds most.
    """
    aim, found = goal.aims[0], []
    better = [one for one in candidates if one.complete and not one.feasible and gain(one, best, aim) > 0]
    for name, over in best.excess.items():
        kept_out = [one for one in better if one.worst is not None and one.worst[0] == name]
        beyond = max(kept_out, key=lambda one: gain(one, best, aim), default=None)
        found.append(
            Binding(
                constraint=name,
                limit=goal.limits.get(name),
                measured=measured(name, over, goal.limits),
                excess=over,
                beyond=beyond.name if beyond is not None else None,
                gain=gain(beyond, best, aim) if beyond is not None else None,
                misses=beyond.excess[name] if beyond is not None else None,
            )
        )
    return sorted(found, key=lambda one: (not one.binds, one.limit is None, -one.excess))


def nothing_fits(candidates: Sequence[Candidate], results: Sequence[Result], goal: Goal) -> Nothing | None:
    """Why no setting is within the limits; None where one is, or nothing but trials that were cut off was played."""
    results = [one for one in results if one.state != "interrupted"]
    if not results or any(one.feasible for one in candidates):
        return None
    if not candidates:
        errors = [one.error for one in results if one.error]
        said = phrase_counted("the only trial was not measured", "none of {n} trials was measured", len(results))
        if errors:
            said += phrase("; the first said: {error}", error=errors[0])
        return Nothing("", 0.0, "", said)
    least = _least(candidates)
    binding = {name: one for name, one in least.items() if one[1] > 0}
    many = phrase_counted(
        "the only setting is not within the limits", "none of {n} settings is within the limits", len(candidates)
    )
    if binding:
        name, (nearest, over) = max(binding.items(), key=lambda item: item[1][1])
        others = [
            phrase("{other} ({one:.0%} above)", other=other, one=one[1])
            for other, one in binding.items()
            if other != name
        ]
        where = phrase("at the nearest,") if nearest.complete else phrase("when the search stopped")
        said = phrase(
            "{many}: {missed} {where} {name}",
            many=many,
            missed=_missed(name, over, goal.limits),
            where=where,
            name=nearest.name,
        )
        return Nothing(
            name, over, nearest.name, said + (phrase("; nor {others}", others=phrases(", ", others)) if others else "")
        )
    nearest = min(candidates, key=lambda one: one.worst[1] if one.worst is not None else 0.0)
    worst = nearest.worst or ("", 0.0)
    each = phrases(
        ", ",
        [
            phrase("{name} by {setting}", name=name, setting=one.name)
            for name, (one, _) in least.items()
            if name != FAILED
        ],
    )
    said = phrase(
        "{many}, though each limit is met by one of them ({each}): they clash; {name} comes nearest "
        "and misses {worst} by {over:.0%}",
        many=many,
        each=each,
        name=nearest.name,
        worst=worst[0],
        over=worst[1],
    )
    return Nothing("", worst[1], nearest.name, said)


def _least(candidates: Sequence[Candidate]) -> dict[str, tuple[Candidate, float]]:
    """By constraint, the setting that exceeds it least, and by how much; plays to the end go before stopped ones."""
    found: dict[str, tuple[Candidate, float]] = {}
    for one in sorted(candidates, key=lambda one: not one.complete):
        for name, over in one.excess.items():
            whole = bool(one.complete) or name not in found  # a play that was stopped has not come to its worst
            if whole and (name not in found or over < found[name][1]):
                found[name] = (one, over)
    return found


def _missed(name: str, over: float, limits: Mapping[str, float]) -> str:
    if name not in limits:
        return phrase("{over:.0%} of the requests failed", over=over)
    amount = _amount(name, measured(name, over, limits))
    return phrase(
        "{name} binds, with {amount} where {limits:g} is allowed ({over:.0%} above),",
        name=name,
        amount=amount,
        limits=limits[name],
        over=over,
    )


def _amount(name: str, value: float) -> str:
    return f"{value:.0%}" if name == FAILED else f"{value:,.4g}"


def spent_on(result: Result) -> str:
    """What the engine was busy with in a play, in a few words; empty where its run is not at hand.

    "KV pool full", "running cap of 8", "prefill: 62 % of the engine's time", "decode: 80 % of the engine's time", or
    "waiting for requests".
    """
    if result.run is None:
        return ""
    try:
        trace = open_run(result.run)
    except (StoreError, WorkbenchError, OSError):
        return ""
    ends = trace.tables["steps"]["end_s"].drop_null()
    if not len(ends):
        return ""
    facts = step_facts(trace, 0.0, float(ends.to_numpy().max()))
    return resource(facts, result.point.hot.get("max_running"))


def resource(facts: Mapping[str, float | None], max_running: int | None = None) -> str:
    """The same from figures of the steps, see :func:`workbench.planning.step_facts.step_facts`."""
    if spent := used_up(facts, max_running):
        return spent
    busy, prefill = facts.get("busy") or 0.0, facts.get("prefill_time") or 0.0
    if busy < 1 / 2:
        return phrase("waiting for requests: steps ran for {busy:.0%} of the time", busy=busy)
    kind, share = (phrase("prefill"), prefill) if prefill >= 1 / 2 else (phrase("decode"), 1 - prefill)
    return phrase("{kind}: {share:.0%} of the engine's time", kind=kind, share=share)
