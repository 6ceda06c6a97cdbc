"""A study: Optuna's ask and tell over a storage that outlives the process, with every trial's result beside it.

Optuna sees the places of the values in the space's lists; :mod:`workbench.tune.search.samplers` has what it is told.
"""

from __future__ import annotations

import random
import warnings
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from workbench.errors import InputError
from workbench.store.owner import this_process
from workbench.tune.goal import Goal
from workbench.tune.neighbours import nearest
from workbench.tune.search.resuming import difference, is_run
from workbench.tune.search.samplers import CONSTRAINTS, constraints, sampler_of, values_of
from workbench.tune.search.storage import default_url, is_missing, open_storage, shown, storing
from workbench.tune.space import Space
from workbench.tune.trial import Asked, Point, Result

if TYPE_CHECKING:
    import optuna
    from optuna.storages import BaseStorage

_VERSION = 1
TIED = 0.01  # share by which goodputs differ that count as equal
_WORKBENCH, _OWNER = "workbench", "owner"  # of the study
_ASKED, _RESULT = "asked", "result"  # of a trial
_START_UP = "start_up "  # before a start-up field's name, among Optuna's parameters
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
        given = {"version": _VERSION, "goal": goal.as_dict(), "space": space.as_dict(), "seed": seed}
        given |= {"sampler": sampler, **(facts or {})}
        with storing(url):
            try:
                study = optuna.create_study(
                    storage=kept, study_name=name, directions=[aim.direction for aim in goal.aims], sampler=made
                )
            except optuna.exceptions.DuplicatedStudyError:
                raise InputError("study", name, "a name that is free", f"go on with it: --resume {name}") from None
            study.set_user_attr(_WORKBENCH, given)
            study.set_user_attr(_OWNER, this_process())
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
        import optuna

        url = storage or default_url(root)
        if is_missing(url):
            raise InputError("--resume", name, f"a study of {shown(url)}, which is not there", "look at its place")
        kept = open_storage(storage, root)
        with storing(url):
            names = sorted(one.study_name for one in optuna.get_all_study_summaries(kept, include_best_trial=False))
            if name not in names:
                known = ", ".join(names[-5:]) if names else "none yet"
                raise InputError("--resume", name, f"a study of {shown(url)} ({known})", "name one of these")
            study = optuna.load_study(study_name=name, storage=kept)
            facts = study.user_attrs.get(_WORKBENCH) or {}
            owner = study.user_attrs.get(_OWNER) or {}
        if not isinstance(facts, dict) or not isinstance(owner, dict) or facts.get("version") != _VERSION:
            raise InputError("--resume", name, "a study of this version of the workbench", "begin a new one")
        for what, value in asked.items():
            if value is not None and facts.get(what) != value:
                raise InputError(
                    f"--resume {name} with another {what}",
                    difference(value, facts.get(what)),
                    "what the study began with",
                    "leave the option out, or begin a new study",
                )
        try:
            if is_run(owner):
                raise InputError(
                    "--resume", name, f"a study that nobody runs (pid {owner['pid']} does)", "end that first"
                )
            goal = Goal.of_dict(facts["goal"])
            made = cls(study, kept, url, goal, space_of(facts), facts)
            made._take_over(optuna.trial.TrialState)
        except (LookupError, TypeError, ValueError, AttributeError) as error:  # somebody else wrote into the storage
            why = f"what the workbench keeps with a study ({type(error).__name__}: {error})"
            raise InputError("--resume", name, why, "begin a new study") from None
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
                trial = self._next(self._places(Point({}, fields)))
                point = self.space.point(self._chosen(trial), fields)
                if point is not None and point.key not in self._taken:
                    return self._started(trial, point)
                self._repeat(trial, point)
            left = [point for point in self.space.points(fields) if point.key not in self._taken]
            return self._begin(nearest(left, self.best, self.space, self._random)) if left else None

    def tell(self, result: Result) -> None:
        """Keep what came of a trial.

        Raises:
            StoreError: the storage is locked or cannot be used.
        """
        from optuna.trial import TrialState

        trial = self._trials.pop(result.number, None)
        with storing(self._url):
            if trial is not None:
                trial.set_user_attr(_RESULT, result.as_dict())
                if result.objectives and result.state in ("complete", "stopped"):
                    trial.set_user_attr(CONSTRAINTS, constraints(result, self.goal))
                    self._study.tell(trial, values_of(result, self.goal))
                else:
                    self._study.tell(trial, state=TrialState.FAIL)
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
            self._study.set_user_attr(_OWNER, {})

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
        trial = self._next(self._places(point))
        self._chosen(trial)
        return self._started(trial, point)

    def _next(self, places: Mapping[str, int]) -> optuna.Trial:
        """A trial with these parameters given; the sampler chooses the others."""
        if places:
            self._study.enqueue_trial(dict(places))
        return self._study.ask()

    def _places(self, point: Point) -> dict[str, int]:
        """The parameters of a point; start-up fields that it does not name are the study's own."""
        hot = {
            name: self.space.hot[name].index(value)
            for name, value in point.hot.items()
            if value in self.space.hot.get(name, ())
        }
        return hot | {
            f"{_START_UP}{name}": values.index(point.start_up.get(name, values[0]))
            for name, values in self.space.restarts.items()
        }

    def _started(self, trial: optuna.Trial, point: Point) -> Asked:
        asked = Asked(self._count, point, self.seed)
        self._count += 1
        trial.set_user_attr(_ASKED, {"number": asked.number, "point": point.as_dict()})
        self._trials[asked.number], self._taken[point.key] = trial, asked.number
        return asked

    def _chosen(self, trial: optuna.Trial) -> dict[str, Any]:
        """One value of each hot knob that counts."""
        chosen: dict[str, Any] = {}
        for name, values in self.space.restarts.items():
            trial.suggest_categorical(f"{_START_UP}{name}", list(range(len(values))))
        for name in sorted(self.space.hot, key=lambda name: name != "policy"):
            values = self.space.hot[name]
            if not self.space.counts(name, chosen.get("policy")):
                continue
            places = len(values)
            if name == "policy":
                chosen[name] = values[trial.suggest_categorical(name, list(range(places)))]
            else:
                chosen[name] = values[trial.suggest_int(name, 0, places - 1)]
        return chosen

    def _repeat(self, trial: optuna.Trial, point: Point | None) -> None:
        """Tell the sampler what is known of a point that it suggested again, or that it cannot have it."""
        from optuna.trial import TrialState

        known = next((one for one in self.results if point is not None and one.point.key == point.key), None)
        if known is not None and known.objectives and known.state in ("complete", "stopped"):
            trial.set_user_attr(CONSTRAINTS, constraints(known, self.goal))
            self._study.tell(trial, values_of(known, self.goal))
        else:
            self._study.tell(trial, state=TrialState.FAIL)

    def _take_over(self, state: Any) -> None:
        """Read the results; what was being played when the process ended is noted as interrupted, and asked again."""
        with storing(self._url):
            self._study.set_user_attr(_OWNER, this_process())
            trials = self._study.get_trials(deepcopy=False)
            for trial in trials:
                facts = trial.user_attrs.get(_RESULT)
                if trial.state in (state.RUNNING, state.WAITING):
                    facts = self._interrupted(trial, state)
                if facts is not None:
                    self.results.append(Result.of_dict(facts))
            self._study.sampler = sampler_of(self.facts["sampler"], self.seed + len(trials))
        self._count = max((one.number for one in self.results), default=-1) + 1
        self._taken = {one.point.key: one.number for one in self.results if one.state != "interrupted"}
        again = {one.point.key: one.point for one in self.results if one.state == "interrupted"}
        self._again.extend(point for key, point in again.items() if key not in self._taken)

    def _interrupted(self, trial: Any, state: Any) -> Any:
        """Note a trial whose process has ended; what had its result already was killed a moment later."""
        asked, facts = trial.user_attrs.get(_ASKED), trial.user_attrs.get(_RESULT)
        if asked is not None and facts is None:
            why = "the process that played it ended"
            result = Result(asked["number"], Point.of_dict(asked["point"]), self.seed, "interrupted", error=why)
            facts = result.as_dict()
            self._kept.set_trial_user_attr(trial._trial_id, _RESULT, facts)
        self._kept.set_trial_state_values(trial._trial_id, state.FAIL)  # Optuna's own tell takes none that waits
        return facts


def best_of(results: Sequence[Result], goal: Goal) -> Result | None:
    """The feasible trial with the best first objective; None where none is feasible.

    Goodputs within a hundredth of the best are as good, and the one whose requests had the most room is taken.
    """
    aim = goal.aims[0]
    sign = 1 if aim.direction == "maximize" else -1
    feasible = [one for one in results if one.feasible]
    if not feasible:
        return None
    top = max(sign * one.objectives[0] for one in feasible)
    tied = TIED * abs(top) if aim.name == "goodput" else 0.0
    ahead = [one for one in feasible if sign * one.objectives[0] >= top - tied]
    return max(ahead, key=lambda one: (one.figures.get("slack", 0.0), sign * one.objectives[0]))
