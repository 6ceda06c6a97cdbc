"""A study: Optuna's ask and tell over a storage that outlives the process, with every trial's result beside it.

What Optuna sees of a point is in :mod:`workbench.tune.search.parameters`, what it is told of a trial in
:mod:`workbench.tune.search.samplers`.
"""

from __future__ import annotations

import random
import warnings
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from workbench.errors import InputError
from workbench.store.owner import this_process
from workbench.tune.goal import Goal
from workbench.tune.neighbours import nearest
from workbench.tune.search.best import best_of
from workbench.tune.search.parameters import chosen_by, places_of
from workbench.tune.search.resuming import ASKED, FACTS, OWNER, RESULT, VERSION, as_kept, load, results_of
from workbench.tune.search.samplers import sampler_of, tell_of
from workbench.tune.search.storage import default_url, open_storage, shown, storing
from workbench.tune.space import Space
from workbench.tune.trial import Asked, Point, Result

if TYPE_CHECKING:
    import optuna
    from optuna.storages import BaseStorage

_REPEATS = 6  # known points in a row that a sampler may suggest


class Study:
    """One search; made by :meth:`create` or :meth:`resume`.

    Attributes:
        name: in the storage.
        url: of the storage, without its password.
        goal: what is looked for.
        space: where.
        seed: of the sampler, and of every trial's workload: trials differ by their setting alone.
        results: what came of the trials, in the order they ended.
    """

    def __init__(
        self, study: optuna.Study, kept: BaseStorage, url: str, goal: Goal, space: Space, facts: Mapping[str, Any]
    ) -> None:
        self.name, self.url, self.goal, self.space = study.study_name, shown(url), goal, space
        self.seed = int(facts["seed"])
        self.facts = dict(facts)
        self.results: list[Result] = []
        self._study, self._kept, self._url, self._count = study, kept, url, 0
        self._trials: dict[int, optuna.Trial] = {}  # that are being played
        self._taken: dict[str, int] = {}  # points by key: the trial that has it
        self._again: deque[Point] = deque()  # that were interrupted
        self._random = random.Random(self.seed)  # noqa: S311  a search, not a secret

    @classmethod
    def create(
        cls,
        name: str,
        goal: Goal,
        space: Space,
        *,
        seed: int = 0,
        sampler: str = "tpe",
        storage: str | None = None,
        root: Path | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> Self:
        """A new study.

        Args:
            name: that no study in the storage has.
            goal: what to look for.
            space: where.
            seed: of the sampler and of the workloads.
            sampler: of :data:`workbench.tune.search.samplers.SAMPLERS`; "gp" imports torch.
            storage: URL; by default SQLite in the runs folder.
            root: folder of the runs.
            facts: plain data to keep with it, such as the scenario; a resume must bring the same.

        Raises:
            InputError: there is a study of that name, or the sampler is not known.
            StoreError: the storage is locked or cannot be used.
        """
        import optuna

        url = storage or default_url(root)
        made = sampler_of(sampler, seed)
        kept = open_storage(storage, root)
        given = {"version": VERSION, "goal": goal.as_dict(), "space": space.as_dict(), "seed": seed}
        given |= {"sampler": sampler, **(facts or {})}
        with storing(url):
            try:
                study = optuna.create_study(
                    storage=kept, study_name=name, directions=[aim.direction for aim in goal.aims], sampler=made
                )
            except optuna.exceptions.DuplicatedStudyError:
                raise InputError("study", name, "a name that is free", f"go on with it: --resume {name}") from None
            study.set_user_attr(FACTS, given)
            study.set_user_attr(OWNER, this_process())
        return cls(study, kept, url, goal, space, given)

    @classmethod
    def resume(
        cls,
        name: str,
        space_of: Callable[[Mapping[str, Any]], Space],
        *,
        storage: str | None = None,
        root: Path | None = None,
        **asked: Any,
    ) -> Self:
        """Go on with a study, also after its process was killed: what it was playing then is played again.

        Args:
            name: of the study.
            space_of: makes the :class:`Space` from the study's facts.
            storage: URL; by default SQLite in the runs folder.
            root: folder of the runs.
            **asked: facts that must be as the study has them, such as ``goal``, ``space``, ``scenario``; None is not
                asked for.

        Raises:
            InputError: there is no such study, it has another goal or space, or it is being run by another process.
            StoreError: the storage is locked or cannot be used.
        """
        study, kept, facts = load(name, storage, root, asked)
        with as_kept(name):
            url, goal = storage or default_url(root), Goal.of_dict(facts["goal"])
            made = cls(study, kept, url, goal, space_of(facts), facts)
            made._take_over()
        return made

    def ask(self, start_up: Mapping[str, Any] | None = None, suggestion: Point | None = None) -> Asked | None:
        """The next trial to play; None when every point of the space was played.

        Args:
            start_up: start-up fields that it must have; none is the study's own.
            suggestion: a point to try; one that was tried already gives way to the sampler's.

        Raises:
            StoreError: the storage is locked or cannot be used.
        """
        fields = dict(start_up or {})
        if self._again and self._again[0].start_up == fields:
            suggestion = self._again.popleft()
        with storing(self._url), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if suggestion is not None and suggestion.key not in self._taken:
                return self._begin(suggestion)
            for _ in range(_REPEATS):
                trial = self._next(places_of(Point({}, fields), self.space))
                point = self.space.point(chosen_by(trial, self.space), fields)
                if point is not None and point.key not in self._taken:
                    return self._started(trial, point)
                known = (one for one in self.results if point is not None and one.point.key == point.key)
                tell_of(self._study, trial, next(known, None), self.goal)
            left = [point for point in self.space.points(fields) if point.key not in self._taken]
            return self._begin(nearest(left, self.best, self.space, self._random)) if left else None

    def tell(self, result: Result) -> None:
        """Keep what came of a trial.

        Raises:
            StoreError: the storage is locked or cannot be used.
        """
        trial = self._trials.pop(result.number, None)
        with storing(self._url):
            if trial is not None:
                trial.set_user_attr(RESULT, result.as_dict())
                tell_of(self._study, trial, result, self.goal)
        self.results.append(result)
        if result.state == "interrupted":
            self._taken.pop(result.point.key, None)
            self._again.append(result.point)

    def note(self, name: str, value: Any) -> None:
        """Keep plain data with the study, such as its confirmation.

        Raises:
            StoreError: the storage is locked or cannot be used.
        """
        with storing(self._url):
            self._study.set_user_attr(f"note {name}", value)

    def noted(self, name: str) -> Any:
        """What was kept under a name; None is nothing."""
        with storing(self._url):
            return self._study.user_attrs.get(f"note {name}")

    def close(self) -> None:
        """Let others go on with it."""
        with storing(self._url):
            self._study.set_user_attr(OWNER, {})

    @property
    def best(self) -> Result | None:
        """The feasible trial with the best first objective; equals by how much room their requests had."""
        return best_of(self.results, self.goal)

    @property
    def taken(self) -> frozenset[str]:
        """Keys of the points that were played or are being played."""
        return frozenset(self._taken)

    @property
    def engine_s(self) -> float:
        """Seconds that engines were held for all its trials."""
        return sum(one.engine_s for one in self.results)

    def _begin(self, point: Point) -> Asked:
        """A trial at a point that was chosen otherwise; the sampler learns of it as of its own."""
        trial = self._next(places_of(point, self.space))
        chosen_by(trial, self.space)
        return self._started(trial, point)

    def _next(self, places: Mapping[str, int]) -> optuna.Trial:
        """A trial with these parameters given; the sampler chooses the others."""
        if places:
            self._study.enqueue_trial(dict(places))
        return self._study.ask()

    def _started(self, trial: optuna.Trial, point: Point) -> Asked:
        asked = Asked(self._count, point, self.seed)
        self._count += 1
        trial.set_user_attr(ASKED, {"number": asked.number, "point": point.as_dict()})
        self._trials[asked.number], self._taken[point.key] = trial, asked.number
        return asked

    def _take_over(self) -> None:
        """Read the results; what was being played when the process ended is noted as interrupted, and asked again."""
        with storing(self._url):
            self._study.set_user_attr(OWNER, this_process())
            trials = self._study.get_trials(deepcopy=False)
            self.results = results_of(trials, self._kept, self.seed)
            self._study.sampler = sampler_of(self.facts["sampler"], self.seed + len(trials))
        self._count = max((one.number for one in self.results), default=-1) + 1
        self._taken = {one.point.key: one.number for one in self.results if one.state != "interrupted"}
        again = {one.point.key: one.point for one in self.results if one.state == "interrupted"}
        self._again.extend(point for key, point in again.items() if key not in self._taken)
