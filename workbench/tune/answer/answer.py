"""The answer of a study: the best setting with its evidence, the runner-up, the front, what matters and what limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pandas as pd

from workbench.i18n import phrase, phrase_counted, phrases
from workbench.store.meta import plain
from workbench.tune.answer.candidates import (
    Candidate,
    candidates_of,
    front_figures,
    gain,
    is_stock,
    pareto_front,
    ranked,
    trade_off,
)
from workbench.tune.answer.confirm import Confirmation
from workbench.tune.answer.importance import importance
from workbench.tune.answer.why import Binding, Nothing, bindings, nothing_fits, spent_on
from workbench.tune.goal import Goal, Objective
from workbench.tune.trial import Result


@dataclass(frozen=True)
class Answer:
    """What the results of a study say; it may be made at any moment of the study.

    Attributes:
        goal: of the study.
        results: all trials, those that failed too; of one origin.
        confirmation: the plays on fresh seeds, once there are some.
        others: results of another origin, which are not compared with these.
    """

    goal: Goal
    results: tuple[Result, ...]
    confirmation: Confirmation | None = None
    others: int = 0

    @classmethod
    def of(cls, results: Sequence[Result], goal: Goal, confirmation: Confirmation | None = None) -> Answer:
        """Take the results of a study.

        Simulated figures and measured ones are never compared: where both are there, the live ones count.
        """
        labels = {one.label for one in results if one.label}
        live = {label for label in labels if label.startswith("live")}
        kept = tuple(one for one in results if not live or not one.label or one.label in live)
        return cls(goal, kept, confirmation, len(results) - len(kept))

    @cached_property
    def candidates(self) -> list[Candidate]:
        """The settings of the search that were measured, in the order of their first play."""
        return candidates_of(self.results)

    @cached_property
    def ranking(self) -> list[Candidate]:
        """Those within the limits, the best of the search first."""
        return ranked(self.candidates, self.goal)

    @property
    def best(self) -> Candidate | None:
        """The setting to recommend: what won the confirmation; before there is one, the best of the search."""
        if self.confirmation is not None and self.confirmation.ended:
            return self.confirmation.winner
        return self.ranking[0] if self.ranking else None

    @property
    def runner_up(self) -> Candidate | None:
        """The next one: of the confirmation where two stood, else of the search; none that broke a limit."""
        best, played = self.best, self.confirmation
        if best is None:
            return None
        behind = played.standing if played is not None and played.ended else []
        out = {one.point.key for one in played.fallen} if played is not None else set()
        keys = {best.point.key, *out}
        return next((one for one in [*behind, *self.ranking] if one.point.key not in keys), None)

    @property
    def best_stock(self) -> Candidate | None:
        """Where the best needs a policy of ours: the best of the search that plain vLLM can serve."""
        best = self.best
        if best is None or is_stock(best.point):
            return None
        return next((one for one in self.ranking if is_stock(one.point)), None)

    @cached_property
    def front(self) -> list[Candidate]:
        """TTFT against gap against throughput: settings of which no other is as good in all three and better in one."""
        return pareto_front(self.candidates, self.goal)

    @cached_property
    def importance(self) -> dict[str, float]:
        """Share of each varied parameter, see :func:`workbench.tune.answer.importance.importance`."""
        return importance(self.candidates, self.goal)

    @property
    def limits(self) -> list[Binding]:
        """The limits as the best setting sees them, those that bind first."""
        best = self.best
        return bindings(self.candidates, best, self.goal) if best is not None else []

    @property
    def nothing(self) -> Nothing | None:
        """Why no setting is within the limits; None where one is."""
        return nothing_fits(self.candidates, self.results, self.goal)

    @property
    def spent_on(self) -> str:
        """What the engine was busy with under the best setting; empty where its run is not at hand."""
        best = self.best
        return next((words for one in reversed(best.complete) if (words := spent_on(one))), "") if best else ""

    @property
    def label(self) -> str:
        """Where the figures come from."""
        return next((one.label for one in reversed(self.results) if one.label), "")

    @property
    def engine_s(self) -> float:
        """Seconds that engines were held for, confirmation and all."""
        confirmed = self.confirmation.results if self.confirmation is not None else ()
        return sum(one.engine_s for one in (*self.results, *confirmed))

    @property
    def words(self) -> list[str]:
        """The answer in sentences, the most important first."""
        best, aim = self.best, self.goal.aims[0]
        if best is None:
            nothing = self.nothing
            confirmed = self.confirmation.words if self.confirmation is not None and self.confirmation.ended else ""
            return [nothing.words if nothing is not None else confirmed or phrase("nothing was played yet")]
        interval = best.interval()
        said: list[str] = [
            phrase(
                "{name}: {words} {interval} {unit} [{label}]",
                name=best.name,
                words=phrase(aim.words),
                interval=interval.words if interval else phrase("n/a"),
                unit=phrase(aim.unit),
                label=phrase(self.label),
            )
        ]
        said.append(self.confirmation.words if self.confirmation is not None else _unconfirmed(best, self.runner_up))
        second = self.runner_up
        if second is not None:
            alike = best.complete[0].seed in {one.seed for one in second.complete}
            behind = (
                phrase("{gain:.1%} behind", gain=-gain(second, best, aim)) if alike else phrase("of the search alone")
            )
            if self.confirmation is not None and second in self.confirmation.standing[1:2]:
                behind = phrase("in the same fresh plays")  # by how much stands there, as a share of this one's figure
            if not math.isfinite(second.objectives[0]):
                behind = phrase("whose {words} was not measured", words=phrase(aim.words))
            said.append(phrase("runner-up: {name}, {behind}", name=second.name, behind=behind))
        if len(self.goal.aims) > 1:
            names = ", ".join(one.name for one in trade_off(self.candidates, self.goal))
            said.append(phrase("on the front of the objectives: {names}", names=names))
        if not is_stock(best.point):
            said.append(self._stock_words(best, aim))
        said += [one.words for one in self.limits if one.limit is not None or one.binds or not self.goal.limits]
        if spent_on := self.spent_on:
            said.append(phrase("the engine under it: {spent_on}", spent_on=spent_on))
        if self.importance:
            shares = self.importance.items()
            each = [phrase("{name} {share:.0%}", name=name, share=share) for name, share in shares]
            said.append(phrase("what matters: ") + phrases(", ", each))
        if self.others:
            said.append(phrase("{others} simulated trials are not compared with these", others=self.others))
        return said

    def _stock_words(self, best: Candidate, aim: Objective) -> str:
        stock, searched = self.best_stock, next((one for one in self.ranking if one.point.key == best.point.key), None)
        policy = phrase("plain vLLM has no policy {policy}", policy=best.point.hot["policy"])
        if stock is None or searched is None:
            return phrase(
                "{policy}; no setting that it can serve was played to its end within the limits", policy=policy
            )
        return phrase(
            "{policy}; the best that it can serve is {name}, {gain:.1%} behind",
            policy=policy,
            name=stock.name,
            gain=-gain(stock, searched, aim),
        )

    @property
    def table(self) -> pd.DataFrame:
        """One row a setting: within the limits, the best on top; then what was stopped; then by how far they miss."""
        missed = [one for one in self.candidates if not one.feasible]
        missed.sort(key=lambda one: (one.broken, one.worst[1] if one.worst is not None else 0.0))
        return pd.DataFrame([self._row(one) for one in (*self.ranking, *missed)])

    def _row(self, one: Candidate) -> dict[str, Any]:
        names = [aim.name for aim in self.goal.aims]
        reached = one.objectives or (None,) * len(names)
        aims = {aim.figure for aim in self.goal.aims}
        figures = [*front_figures(self.candidates, self.goal), *self.goal.limits]
        worst = one.worst
        return {
            "setting": one.name,
            "limits": "met" if one.feasible else "broken" if one.broken else "stopped early",
            **dict(zip(names, reached, strict=True)),
            **{name: one.figures.get(name) for name in dict.fromkeys(figures) if name not in aims},
            "nearest limit": worst[0] if worst is not None else None,
            "excess": worst[1] if worst is not None else None,
            "plays": len(one.plays),
            "engine_s": one.engine_s,
        }

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        best, second, nothing = self.best, self.runner_up, self.nothing
        shown = {
            "label": self.label,
            "goal": {**self.goal.as_dict(), "words": self.goal.words},
            "best": best.as_dict() if best is not None else None,
            "runner_up": second.as_dict() if second is not None else None,
            "confirmation": self.confirmation.as_dict() if self.confirmation is not None else None,
            "best_stock": stock.as_dict() if (stock := self.best_stock) is not None else None,
            "front": [one.as_dict() for one in self.front],
            "trade_off": [one.name for one in trade_off(self.candidates, self.goal)],
            "importance": self.importance,
            "limits": [one.as_dict() for one in self.limits],
            "nothing": nothing.as_dict() if nothing is not None else None,
            "spent_on": self.spent_on,
            "settings": len(self.candidates),
            "trials": len(self.results),
            "engine_s": self.engine_s,
            "words": self.words,
        }
        found: dict[str, Any] = plain(shown)
        return found


def _unconfirmed(best: Candidate, second: Candidate | None) -> str:
    plays = len(best.complete)
    luck = "" if second is None else phrase(", and {name} may be as good", name=second.name)
    return phrase_counted(
        "not confirmed yet: it rests on {n} play{luck}",
        "not confirmed yet: it rests on {n} plays{luck}",
        plays,
        luck=luck,
    )
