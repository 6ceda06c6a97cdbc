"""Which parameters matter: what tells the best settings of a study from the rest."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.tune.answer.candidates import Candidate
from workbench.tune.goal import Goal

_LEAST = 8  # settings, below which a share would be a guess
_BEST = 0.25  # share of the settings that count as the best: a study has some dozens, so a tenth would be two or three
_UNSET = "unset"  # of a parameter that a setting does not have, such as target_gap_ms under another policy


def parameters(candidates: Sequence[Candidate]) -> dict[str, list[Any]]:
    """The parameters that were varied, with their values; numbers in order."""
    found: dict[str, list[Any]] = {}
    for one in candidates:
        for name in {**one.point.hot, **one.point.start_up}:
            found.setdefault(name, [])
    for name, values in found.items():
        for one in candidates:
            value = _value(one, name)
            if value not in values:
                values.append(value)
        values.sort(key=_place)
    return {name: values for name, values in found.items() if len(values) > 1}


def importance(candidates: Sequence[Candidate], goal: Goal) -> dict[str, float]:
    """Share of each varied parameter in what makes a setting one of the best; they add up to 1, the largest first.

    PED-ANOVA (Watanabe et al., 2023, "PED-ANOVA: Efficiently Quantifying Hyperparameter Importance in Arbitrary
    Subspaces") as Optuna has it. It asks only which settings are the best quarter: those within the limits by their
    objective, then the others by how far they miss. Empty where fewer than eight settings were measured, or nothing
    was varied.
    """
    varied = parameters(candidates)
    if len(candidates) < _LEAST or not varied:
        return {}
    import optuna  # here, since it takes a second to import
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

    optuna.logging.set_verbosity(optuna.logging.ERROR)  # it tells of every study that is made
    choices = {name: optuna.distributions.CategoricalDistribution(values) for name, values in varied.items()}
    study = optuna.create_study(storage=optuna.storages.InMemoryStorage())
    for place, one in enumerate(_order(candidates, goal)):
        params = {name: _value(one, name) for name in varied}
        study.add_trial(optuna.create_trial(params=params, distributions=choices, value=float(place)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        evaluator = PedAnovaImportanceEvaluator(target_quantile=_BEST)
        shares: Mapping[str, float] = get_param_importances(study, evaluator=evaluator)
    total = sum(shares.values())
    return {name: share / total for name, share in shares.items()} if total > 0 else {}


def _order(candidates: Sequence[Candidate], goal: Goal) -> list[Candidate]:
    """The best first: within the limits by the objective, the others by how far they miss."""
    sign = -1.0 if goal.aims[0].direction == "maximize" else 1.0

    def loss(one: Candidate) -> tuple[bool, float]:
        if one.feasible:
            return False, sign * one.objectives[0]
        return True, sum(max(over, 0.0) for over in one.excess.values())

    return sorted(candidates, key=loss)


def _place(value: Any) -> tuple[bool, float, str]:
    number = isinstance(value, int | float)
    return not number, float(value) if number else 0.0, str(value)


def _value(one: Candidate, name: str) -> Any:
    return {**one.point.hot, **one.point.start_up}.get(name, _UNSET)
