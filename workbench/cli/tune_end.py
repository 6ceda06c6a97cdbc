"""How ``workbench tune`` ends where a study has no setting to recommend: as an error, so that a script stops there."""

from __future__ import annotations

import shlex
from pathlib import Path

from workbench.errors import EngineError, InputError, WorkbenchError
from workbench.tune.goal import Goal
from workbench.tune.tune import Tune


def why_nothing(tune: Tune) -> WorkbenchError | None:
    """The error to end with where there is no setting to recommend; None where there is one, or nothing was played.

    Returns:
        EngineError: no trial, or no fresh play, was measured.
        InputError: no setting is within the limits, or each that was confirmed broke one. Its words, with the setting
            and the limit of each, stand in the answer above it.
    """
    nothing, played = tune.answer.nothing, tune.answer.confirmation
    if nothing is not None and not tune.answer.candidates:
        return EngineError(f"study {tune.name}: {nothing.words}; look at the log of its engine")
    if nothing is not None:
        expected = f"limits that a setting can meet: {nothing.words}"
        return InputError("limits", _limits(tune.question.goal), expected, _further(tune))
    if played is None or not played.ended or played.winner is not None:
        return None
    if not played.candidates:
        return EngineError(f"study {tune.name}: {played.words}; look at the log of its engine, and resume it")
    fallen = len(played.fallen)
    broke = f"each of the {fallen} best of the search broke one" if fallen > 1 else "the best of the search broke one"
    return InputError(
        "limits",
        _limits(tune.question.goal),
        f"limits that a setting keeps on fresh seeds too: {broke}",
        f"allow more, or search on with --resume {shlex.quote(tune.name)} --trials N",
    )


def _further(tune: Tune) -> str:
    """What to do where nothing is within the limits; most of a space may never have been played."""
    played, settings = len(tune.answer.candidates), tune.question.settings
    if played >= settings:
        return "allow more, or widen the space"
    further = f"--resume {shlex.quote(tune.name)} with more --trials and --patience"
    return f"allow more, or search on ({played} of {settings:,} settings were played): {further}"


def played_whole(tune: Tune) -> bool:
    """Whether there is a run of a play to its end, so that a report can be made also where no setting is to be had."""
    plays = (play for one in tune.answer.candidates for play in one.complete)
    return any(play.run and Path(play.run).is_dir() for play in plays)


def _limits(goal: Goal) -> str:
    return ", ".join(f"{one}={value:g}" for one, value in goal.limits.items()) or "no failed requests"
