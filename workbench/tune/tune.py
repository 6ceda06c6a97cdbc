"""A question from its first trial to its answer: simulation, search, confirmation, on one engine."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workbench.i18n import marked
from workbench.run import Run
from workbench.session import Workbench
from workbench.tune.answer.answer import Answer
from workbench.tune.answer.beyond import look_beyond
from workbench.tune.answer.confirm import Confirmation, confirm
from workbench.tune.answer.emit import Emitted, emit
from workbench.tune.foretelling import foretell
from workbench.tune.kept import Kept
from workbench.tune.play.players import EnginePlayer
from workbench.tune.question import Question
from workbench.tune.search.resuming import resume_command
from workbench.tune.search.study import Study
from workbench.tune.search.tuning import Progress, Tuning
from workbench.tune.trial import Asked, Player, Result


@dataclass(frozen=True)
class Now:
    """How far it is.

    Attributes:
        stage: "engine", "simulation", "search", "beyond", "confirmation" or "over".
        done: plays of that stage so far.
        most: plays that it may take; 0 is not known.
        what: is going on.
    """

    stage: str
    done: int
    most: int
    what: str


class Tune:
    """Answers a question; :meth:`stop` may come from any thread, and :attr:`answer` holds what there is by then.

    Args:
        question: what is asked.
        bench: an engine that runs already, with the question's start-up fields; it is not ended. Without one, the
            engine is started and ended here.
        runs: folder of the runs, and of the studies.
        storage: of the study; by default SQLite in the folder of the runs.
        name: of the study; by default the scenario's with the time.
        study: one to go on with, in place of a new one.
        player: plays trials in place of an engine here, such as a :class:`workbench.tune.ray.player.RayPlayer`; it is
            closed at the end.
        tell: told of every play as it begins and ends, in the thread of :meth:`run`.
        began: told of each run of a trial as it begins.

    Attributes:
        model: the files that the engine served, once one was started.
    """

    def __init__(
        self,
        question: Question,
        *,
        bench: Workbench | None = None,
        runs: Path | None = None,
        storage: str | None = None,
        name: str | None = None,
        study: Study | None = None,
        player: Player | None = None,
        tell: Callable[[Now], None] = lambda _: None,
        began: Callable[[Asked, Run], None] | None = None,
    ) -> None:
        self.question = question
        self.confirmation: Confirmation | None = None
        fresh = f"{question.scenario.name}-{time.strftime('%m%d-%H%M%S')}-{secrets.token_hex(2)}"
        self.name = study.name if study is not None else name or fresh
        self.why = ""
        self._beyond: list[Result] = []
        self._tell, self._runs, self._storage = tell, runs, storage
        self._stopping = threading.Event()
        self._study, self._bench = study, bench
        self._tuning: Tuning | None = None
        self._player: Player = player or EnginePlayer(
            question.scenario,
            question.goal,
            question.space,
            runs=runs,
            bench=bench,
            progress=lambda _seconds, what: self._say("engine", 0, 0, what),
            began=began,
        )
        self.model: Any = None

    @property
    def results(self) -> list[Result]:
        """Of the search, so far."""
        return list(self._study.results) if self._study is not None else []

    @property
    def answer(self) -> Answer:
        """What is known by now."""
        return Answer.of([*self.results, *self._beyond], self.question.goal, self.confirmation)

    @property
    def emitted(self) -> Emitted | None:
        """The answer's setting as commands; None while there is none."""
        best = self.answer.best
        if best is None:
            return None
        return emit(best.point, self.question.space.config_of(best.point.start_up), self.model)

    @property
    def again(self) -> str:
        """The command that goes on with it."""
        return resume_command(self.name, self._storage, self._runs)

    @property
    def stopped(self) -> bool:
        """Whether somebody stopped it."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """End it soon; what was played is kept, and the study can be gone on with."""
        self._stopping.set()
        if self._tuning is not None:
            self._tuning.stop()

    def open(self) -> Study:
        """The study, made where it is a new one; :meth:`run` does it where nobody has.

        Raises:
            InputError: there is a study of that name, or the storage is none.
            StoreError: the storage is locked or cannot be used.
        """
        asked = self.question
        if self._study is None:
            try:
                self._study = Study.create(
                    self.name, asked.goal, asked.space, seed=asked.seed, sampler=asked.sampler,
                    storage=self._storage, root=self._runs, facts=asked.facts,
                )  # fmt: skip
            except BaseException:
                self._player.close()
                raise
        return self._study

    def run(self) -> Answer:
        """Search and confirm; takes minutes, so in a thread or with a progress bar.

        Returns:
            The answer; where it was stopped, what there was by then.

        Raises:
            InputError: something does not fit the engine.
            EngineError: the engine does not come up, or a lent one died.
            StoreError: the storage is locked, or a run cannot be recorded.
        """
        asked = self.question
        with ExitStack() as at_the_end:
            at_the_end.callback(self._player.close)
            if self._bench is not None:
                at_the_end.enter_context(self._bench.held(f"study {self.name}"))
            study = self.open()
            at_the_end.callback(study.close)
            kept = Kept(study)
            kept.means = asked.means
            self.why = kept.over(asked.allowance) or self._search(study, kept)
            if isinstance(self._player, EnginePlayer):
                self.model = self._player.bench.engine.model
            if asked.rounds and not self.stopped:
                self._look_beyond(study, kept)
                if self.answer.ranking:
                    self._confirm(study, kept)
        self._say("over", len(self.results), len(self.results), self.why)
        return self.answer

    def _search(self, study: Study, kept: Kept) -> str:
        """Search; returns why that ended."""
        asked = self.question
        prior = None
        if asked.simulate:
            prior = foretell(asked, lambda *now: self._say("simulation", *now), lambda: self.stopped)
        tuning = self._tuning = Tuning(
            study, self._player, asked.allowance, prior, asked.error_rate,
            open_loop=not asked.scenario.concurrency, tell=self._of_search,
        )  # fmt: skip
        if self.stopped:
            return ""
        tuning.run()
        if not tuning.stopping and (study.results or not tuning.out_of_time):
            kept.note_over(asked.allowance, tuning.why)
        return tuning.why

    def _look_beyond(self, study: Study, kept: Kept) -> None:
        self._beyond = kept.beyond

        def tell(result: Result) -> None:
            self._beyond.append(result)
            kept.note_beyond(self._beyond)
            self._say("beyond", len(self._beyond), 0, result.point.name)

        results = [*study.results, *self._beyond]
        look_beyond(results, study.goal, study.space, self._player, tell=tell, stopped=lambda: self.stopped)

    def _confirm(self, study: Study, kept: Kept) -> None:
        asked = self.question

        def tell(now: Confirmation) -> None:
            self.confirmation = now
            kept.note_confirmed(now)
            self._say("confirmation", len(now.results), 2 * asked.rounds, now.results[-1].point.name)

        self._say("confirmation", 0, 2 * asked.rounds, marked("the pick and the runner-up on fresh seeds"))
        self.confirmation = confirm(
            [*study.results, *self._beyond], asked.goal, self._player, rounds=asked.rounds, had=kept.confirmed,
            tell=tell, stopped=lambda: self.stopped,
        )  # fmt: skip
        kept.note_confirmed(self.confirmation)
        self._say("confirmation", len(self.confirmation.results), 2 * asked.rounds, "")

    def _of_search(self, now: Progress) -> None:
        if now.asked is not None:
            self._say("search", now.done, now.most, now.asked.point.name)

    def _say(self, stage: str, done: int, most: int, what: str) -> None:
        self._tell(Now(stage, done, most, what))


def tune(question: Question, **more: Any) -> Tune:
    """Answer a question: ``tune(Question.of("policies", limits={"gap_p99_ms": 200})).answer.words``.

    Args:
        question: what is asked.
        **more: as for :class:`Tune`.

    Raises:
        InputError: something does not fit the engine.
        EngineError: the engine does not come up.
        StoreError: the storage is locked, or a run cannot be recorded.
    """
    asked = Tune(question, **more)
    asked.run()
    return asked
