"""Points of a space as Optuna's parameters: the places of the values in the space's lists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from workbench.tune.space import Space
from workbench.tune.trial import Point

if TYPE_CHECKING:
    import optuna

_START_UP = "start_up "  # before a start-up field's name


def places_of(point: Point, space: Space) -> dict[str, int]:
    """The parameters of a point; start-up fields that it does not name are the study's own."""
    hot = {name: space.hot[name].index(value) for name, value in point.hot.items() if value in space.hot.get(name, ())}
    return hot | {
        f"{_START_UP}{name}": values.index(point.start_up.get(name, values[0]))
        for name, values in space.restarts.items()
    }


def chosen_by(trial: optuna.Trial, space: Space) -> dict[str, Any]:
    """One value of each hot knob that counts; the sampler chooses what was not given when the trial was asked for."""
    chosen: dict[str, Any] = {}
    for name, values in space.restarts.items():
        trial.suggest_categorical(f"{_START_UP}{name}", list(range(len(values))))
    for name in sorted(space.hot, key=lambda name: name != "policy"):
        values = space.hot[name]
        if not space.counts(name, chosen.get("policy")):
            continue
        places = len(values)
        if name == "policy":
            chosen[name] = values[trial.suggest_categorical(name, list(range(places)))]
        else:
            chosen[name] = values[trial.suggest_int(name, 0, places - 1)]
    return chosen
