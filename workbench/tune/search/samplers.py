"""Optuna's samplers, and what they are told of a trial.

The excess of every limit is a constraint, the values are the goal's objectives. To a goodput a quarter of a request is
added or taken by how much room the requests had, since many settings serve the same requests in time.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from workbench.errors import InputError
from workbench.tune.goal import FAILED, FAR, Goal
from workbench.tune.trial import Result

if TYPE_CHECKING:
    import optuna

SAMPLERS = ("tpe", "gp", "random")
_CONSTRAINTS = "constraints"  # the user attribute of a trial that has them
_TIE = 0.25  # of a request
_FIRST_RANDOM = 6  # trials before a sampler has something to go by; those that a simulation suggested count


def sampler_of(name: str, seed: int) -> optuna.samplers.BaseSampler:
    """A sampler that knows the limits as constraints.

    Raises:
        InputError: there is no such sampler.
    """
    from optuna import samplers

    if name not in SAMPLERS:
        raise InputError("--sampler", name, f"one of {', '.join(SAMPLERS)}", "choose one of these")
    seed %= 2**32
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "random":
            return samplers.RandomSampler(seed=seed)
        if name == "gp":  # imports torch
            return samplers.GPSampler(seed=seed, n_startup_trials=_FIRST_RANDOM, constraints_func=_constraints_of)
        return samplers.TPESampler(
            seed=seed,
            n_startup_trials=_FIRST_RANDOM,
            multivariate=True,
            group=True,
            constant_liar=True,
            constraints_func=_constraints_of,
        )


def _constraints_of(trial: Any) -> list[float]:
    return list(trial.user_attrs.get(_CONSTRAINTS, (FAR,)))


def tell_of(study: optuna.Study, trial: optuna.Trial, result: Result | None, goal: Goal) -> None:
    """Tell a study's sampler what came of a trial.

    Args:
        study: whose trial it is.
        trial: that was asked for.
        result: of it, or of an earlier trial at the same point; None is a point that cannot be had.
        goal: of the study.
    """
    from optuna.trial import TrialState

    if result is not None and result.objectives and result.state in ("complete", "stopped"):
        trial.set_user_attr(_CONSTRAINTS, _constraints(result, goal))
        study.tell(trial, _values(result, goal))
    else:
        study.tell(trial, state=TrialState.FAIL)


def _constraints(result: Result, goal: Goal) -> list[float]:
    """In the goal's order, whatever a trial that was stopped has measured of them."""
    return [min(result.excess.get(name, 0.0), FAR) for name in (*goal.limits, FAILED)]


def _values(result: Result, goal: Goal) -> list[float]:
    """The objectives as Optuna is told them."""
    values = []
    for aim, value in zip(goal.aims, result.objectives, strict=True):
        if aim.name == "goodput" and result.state == "complete":
            value += _TIE * result.figures.get("slack", 0.0) / max(result.figures.get("duration_s", 1.0), 1e-9)
        values.append(value if math.isfinite(value) else math.copysign(FAR, value))
    return values
