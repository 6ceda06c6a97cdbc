"""How ``workbench tune`` ends where a study has no setting to recommend: as an error, so that a script stops there."""

from __future__ import annotations

import shlex

from workbench.errors import EngineError, InputError, WorkbenchError
from workbench.tune.goal import Goal
from workbench.tune.tune import Tune


def check_found(tune: Tune) -> None:
    """Refuse what the search found nothing for.

    Raises:
        EngineError: no trial was measured.
        InputError: no setting is within the limits.
    """
    nothing = tune.answer.nothing
    if nothing is not None and not tune.answer.candidates:
        raise EngineError(f"study {tune.name}: {nothing.words}; look at the log of its engine")
    if nothing is not None:
        raise InputError(
            "limits",
            _limits(tune.question.goal),
            f"limits that a setting can meet: {nothing.words}",
            "allow more, or widen the space",
        )


def why_unconfirmed(tune: Tune) -> WorkbenchError | None:
    """The error to end with where the confirmation has thrown out every setting that it played; else None.

    Its words, with the setting and the limit of each, stand in the answer above it.
    """
    played = tune.answer.confirmation
    if played is None or not played.ended or played.winner is not None:
        return None
    if not played.candidates:
        return EngineError(f"study {tune.name}: {played.words}; look at the log of its engine, and resume it")
    fallen = f"each of the {len(played.fallen)} best of the search broke one"
    return InputError(
        "limits",
        _limits(tune.question.goal),
        f"limits that a setting keeps on fresh seeds too: {fallen}",
        f"allow more, or search on with --resume {shlex.quote(tune.name)} --trials N",
    )


def _limits(goal: Goal) -> str:
    return ", ".join(f"{one}={value:g}" for one, value in goal.limits.items()) or "no failed requests"
