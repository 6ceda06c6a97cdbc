"""The search: asks a study for trials, has them played, and ends when there is no reason to go on.

Hot knobs come first, on one engine. Start-up fields come last, one engine for each combination and several hot trials
on it: the best hot points so far, then what the sampler makes of them.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from workbench.errors import InputError
from workbench.i18n import marked, phrase, phrase_counted
from workbench.tune.goal import Goal
from workbench.tune.search.best import at_the_top, is_progress
from workbench.tune.search.prior import Prior
from workbench.tune.search.sequential import ERROR_RATE, Sequential
from workbench.tune.search.study import Study
from workbench.tune.search.workers import Stoppable, workers_of
from workbench.tune.trial import Asked, Player, Point, Result, Watch

_LOOK_S = 0.5
_LEAST_GROUP = 2  # trials that an engine start must serve
_UNTIL_ONE_FITS = 3  # times the patience: who ends before says that no setting is within the limits


@dataclass(frozen=True)
class Allowance:
    """How much a search may spend.

    Attributes:
        trials: at most; those of an earlier session of the study count.
        engine_s: seconds that engines may be held for, virtual ones where they are simulated.
        minutes: on the wall, of this session.
        patience: trials in a row without progress, after which it ends, and three times as many before one is within
            the limits; those that a simulation suggests do not count.

    Raises:
        InputError: a number is not above 0.
    """

    trials: int = 40
    engine_s: float | None = None
    minutes: float | None = None
    patience: int = 8

    def __post_init__(self) -> None:
        for name in ("trials", "engine_s", "minutes", "patience"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not 0 < value < float("inf")):
                raise InputError(f"--{name.replace('_s', '-seconds')}", value, "a number above 0", "allow some")


@dataclass(frozen=True)
class Progress:
    """How far a search is.

    Attributes:
        what: "begins", "ended" (a trial), or "over" (the search).
        asked: the trial; None when it is over.
        result: what came of it, once it ended.
        done: trials that ended, of the whole study.
        most: trials that there may be.
        engine_s: spent so far.
        best: the feasible trial that is ahead.
        why: why the search is over.
    """

    what: str
    asked: Asked | None
    result: Result | None
    done: int
    most: int
    engine_s: float
    best: Result | None
    why: str = ""


@dataclass
class Tuning:
    """One session of a study.

    Attributes:
        study: keeps the trials.
        player: plays them, one at a time or, where it has ``submit`` and ``results``, several; it is not closed.
        allowance: how much may be spent.
        prior: what a simulation says; None is nothing.
        error_rate: of the sequential test; None plays every trial to its end.
        open_loop: whether all requests come at times of their own, however fast they are served: when all of them are
            served in time, no setting can do more.
        tell: told of each trial.
        why: why it ended, once it has.
    """

    study: Study
    player: Player
    allowance: Allowance = field(default_factory=Allowance)
    prior: Prior | None = None
    error_rate: float | None = ERROR_RATE
    open_loop: bool = False
    tell: Callable[[Progress], None] = lambda _: None
    why: str = ""
    _stopping: threading.Event = field(default_factory=threading.Event)

    @property
    def goal(self) -> Goal:
        """Of the study."""
        return self.study.goal

    @property
    def stopping(self) -> bool:
        """Whether somebody has stopped it."""
        return self._stopping.is_set()

    @property
    def out_of_time(self) -> bool:
        """Whether the minutes of this session are over."""
        minutes = self.allowance.minutes
        return minutes is not None and time.monotonic() - self._begun > minutes * 60

    def stop(self) -> None:
        """End the search from any thread; the trial that is being played is cut off, and all that ended are kept."""
        self._stopping.set()

    def run(self) -> list[Result]:
        """Search until the allowance is spent or there is no reason to go on; returns the study's results.

        Raises:
            InputError: the scenario or a setting does not fit the engine.
            EngineError: the study's own engine does not come up.
            StoreError: the storage is locked or cannot be used, or a run cannot be recorded.
        """
        self._begun = time.monotonic()
        groups = self.study.space.starts()
        most = self.allowance.trials
        hot = most if not groups else max(most // 2, 1)
        for name, fields, upto in self._phases(groups, hot, most):
            why = self._search(fields, upto, suggestions=self._carried(fields))
            self.why = phrase("{name}: {why}", name=name, why=why) if groups else why
            if self.stopping or self._spent():
                break
        self.tell(self._progress("over", None, None, self.why))
        return self.study.results

    def _phases(
        self, groups: Sequence[Mapping[str, Any]], hot: int, most: int
    ) -> Iterator[tuple[str, Mapping[str, Any], int]]:
        """Hot trials, then each engine start with an equal share of what is left."""
        yield "hot", {}, hot
        for place, fields in enumerate(groups):
            left = most - self._done
            share = max(left // (len(groups) - place), _LEAST_GROUP)
            yield " ".join(f"{name} {value}" for name, value in fields.items()), fields, min(self._done + share, most)

    def _carried(self, fields: Mapping[str, Any]) -> list[Point]:
        """What an engine of its own is tried with first: the best of the study's own."""
        if not fields:
            return []
        best = self.study.best
        made = self.study.space.point(best.point.hot, fields) if best is not None else None
        return [made] if made is not None else []

    def _search(self, fields: Mapping[str, Any], upto: int, suggestions: list[Point]) -> str:
        """Trials with these start-up fields, as many at a time as the player plays; returns why they ended."""
        idle, why, flying = 0, "", dict[int, tuple[Asked, bool]]()
        workers = workers_of(self.player, self._watch)
        try:
            while True:
                while not why and len(flying) < workers.workers:
                    asked, foretold, why = self._next(fields, upto - len(flying), suggestions, idle)
                    if asked is not None:
                        flying[asked.number] = asked, foretold
                        self.tell(self._progress("begins", asked, None))
                        workers.submit(asked, beat=self._beat)
                if not flying or self.stopping:
                    return why or marked("stopped")
                for result in workers.results(_LOOK_S):
                    asked, foretold = flying.pop(result.number)
                    before = self.study.best
                    self.study.tell(result)
                    self.tell(self._progress("ended", asked, result))
                    idle = 0 if is_progress(before, self.study.best, self.goal) else idle + (not foretold)
                if self._stopping.is_set():
                    why = "stopped"
        finally:
            for asked, _ in flying.values():
                why = marked("the search was interrupted")
                self.study.tell(Result(asked.number, asked.point, asked.seed, "interrupted", error=why))

    def _next(
        self, fields: Mapping[str, Any], upto: int, suggestions: list[Point], idle: int
    ) -> tuple[Asked | None, bool, str]:
        """The next trial, whether it was suggested by something else than the sampler, and why there is none."""
        why = "stopped" if self.stopping else _played(upto) if self._done >= upto else self._spent()
        why = why or (at_the_top(self.study.best, self.goal) if self.open_loop else "")
        if why:
            return None, False, why
        point = suggestions.pop(0) if suggestions else None
        if point is None and self.prior is not None and not fields:
            point = self.prior.suggest(self.study.results, self.study.best, self.study.taken)
        if point is None and idle >= self._patience:
            return None, False, phrase("no progress in {idle} trials", idle=idle)
        asked = self.study.ask(fields, point)
        return asked, point is not None, "" if asked is not None else "every setting was played"

    @property
    def _beat(self) -> float | None:
        """A goodput that a trial must be able to reach."""
        best = self.study.best
        return best.objectives[0] if best is not None and self.goal.objectives == ("goodput",) else None

    @property
    def _patience(self) -> int:
        """A simulation that says there is nothing better is half of a reason to end; that nothing fits takes more."""
        usual = self.allowance.patience if self.prior is None else max(self.allowance.patience // 4, 1)
        return usual if self.study.best is not None else _UNTIL_ONE_FITS * usual

    def _watch(self, beat: float | None) -> Watch:
        test = None if self.error_rate is None else Sequential(self.goal, self.error_rate, beat)
        return Stoppable(test, self._stopping)

    def _spent(self) -> str:
        """What of the allowance is spent, in words; empty where there is some left."""
        allowed = self.allowance
        if self._done >= allowed.trials:
            return _played(self._done)
        if allowed.engine_s is not None:
            complete = sorted(one.engine_s for one in self.study.results if one.state == "complete")
            usual = complete[len(complete) // 2] if complete else 0.0
            if self.study.engine_s + usual > allowed.engine_s:
                return phrase(
                    "{spent:.0f} of {allowed:g} engine-seconds are spent",
                    spent=self.study.engine_s,
                    allowed=allowed.engine_s,
                )
        return phrase("{minutes:g} minutes are over", minutes=allowed.minutes) if self.out_of_time else ""

    @property
    def _done(self) -> int:
        return sum(one.state != "interrupted" for one in self.study.results)

    def _progress(self, what: str, asked: Asked | None, result: Result | None, why: str = "") -> Progress:
        study = self.study
        return Progress(what, asked, result, self._done, self.allowance.trials, study.engine_s, study.best, why)


def _played(trials: int) -> str:
    return phrase_counted("{n} trial was played", "{n} trials were played", trials)
