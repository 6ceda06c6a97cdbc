"""A study that is gone on with: found, the same as asked for, run by nobody else, and what its process left undone."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.errors import InputError
from workbench.proc import boot_id, pid_space, started
from workbench.store.owner import this_process
from workbench.tune.search.storage import default_url, is_missing, open_storage, shown, storing
from workbench.tune.trial import Point, Result

if TYPE_CHECKING:
    import optuna
    from optuna.storages import BaseStorage

VERSION = 1  # of what is kept under these names
FACTS, OWNER = "workbench", "owner"  # of a study
ASKED, RESULT = "asked", "result"  # of a trial


def resume_command(name: str, storage: str | None = None, root: Path | None = None) -> str:
    """What goes on with a study on the command line.

    Args:
        name: of the study.
        storage: URL, as it was given; its password is not shown.
        root: folder of the runs, as it was given.
    """
    words = ["workbench", "tune", "--resume", name]
    words += ["--storage", shown(storage)] if storage else []
    words += ["--runs", str(root)] if root is not None else []
    return shlex.join(words)


def load(
    name: str, storage: str | None, root: Path | None, asked: Mapping[str, Any]
) -> tuple[optuna.Study, BaseStorage, dict[str, Any]]:
    """A study that may be gone on with, its storage, and the facts that it began with.

    Args:
        name: of the study.
        storage: URL; by default SQLite in the runs folder.
        root: folder of the runs.
        asked: facts that must be as the study has them; None is not asked for.

    Raises:
        InputError: there is no such study, it began otherwise, or it is being run by another process.
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
        facts = study.user_attrs.get(FACTS) or {}
        owner = study.user_attrs.get(OWNER) or {}
    if not isinstance(facts, dict) or not isinstance(owner, dict) or facts.get("version") != VERSION:
        raise InputError("--resume", name, "a study of this version of the workbench", "begin a new one")
    _expect_same(name, asked, facts)
    with as_kept(name):
        if _is_run(owner):
            raise InputError("--resume", name, f"a study that nobody runs (pid {owner['pid']} does)", "end that first")
    return study, kept, facts


@contextlib.contextmanager
def as_kept(name: str) -> Iterator[None]:
    """Refuse in one line what somebody else wrote into the storage.

    Args:
        name: of the study.

    Raises:
        InputError: what is read meanwhile is not what the workbench keeps.
    """
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        why = f"what the workbench keeps with a study ({type(error).__name__}: {error})"
        raise InputError("--resume", name, why, "begin a new study") from None


def results_of(trials: Iterable[Any], kept: BaseStorage, seed: int) -> list[Result]:
    """The results so far; what was being played when the process ended is noted as interrupted.

    Args:
        trials: as Optuna has them.
        kept: their storage.
        seed: of the study.
    """
    from optuna.trial import TrialState

    results = []
    for trial in trials:
        facts = trial.user_attrs.get(RESULT)
        if trial.state in (TrialState.RUNNING, TrialState.WAITING):
            asked = trial.user_attrs.get(ASKED)
            if asked is not None and facts is None:  # what has its result already was killed a moment later
                why = "the process that played it ended"
                point = Point.of_dict(asked["point"])
                facts = Result(asked["number"], point, seed, "interrupted", error=why).as_dict()
                kept.set_trial_user_attr(trial._trial_id, RESULT, facts)
            kept.set_trial_state_values(trial._trial_id, TrialState.FAIL)  # Optuna's own tell takes none that waits
        if facts is not None:
            results.append(Result.of_dict(facts))
    return results


def _expect_same(name: str, asked: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
    for what, value in asked.items():
        if value is not None and facts.get(what) != value:
            raise InputError(
                f"--resume {name} with another {what}",
                _difference(value, facts.get(what)),
                "what the study began with",
                "leave the option out, or begin a new study",
            )


def _difference(asked: Any, had: Any) -> str:
    """What differs between what was asked for and what a study has, short."""
    if isinstance(asked, Mapping) and isinstance(had, Mapping):
        for name in {**asked, **had}:
            if asked.get(name) != had.get(name):
                return f"{name} {_difference(asked.get(name), had.get(name))}"
    return f"{asked} in place of {had}"


def _is_run(owner: Mapping[str, Any]) -> bool:
    """Whether the process that has the study still runs on this machine, and is not this one."""
    mine = this_process()
    if not owner or owner == mine or (owner.get("boot"), owner.get("pid_space")) != (boot_id(), pid_space()):
        return False
    return bool(started(owner["pid"]) == owner["start"])
