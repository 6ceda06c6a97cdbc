"""How far two points of a space are apart, in places of its lists; for the few points that a sampler leaves."""

from __future__ import annotations

import random
from collections.abc import Sequence

from workbench.tune.space import Space
from workbench.tune.trial import Point, Result

_OTHER = 3.0  # places that another policy, or a knob that only one of the two has, counts as


def distance(one: Point, other: Point, space: Space) -> float:
    """Sum over the knobs of the places between their values; another policy counts as three."""
    far = 0.0
    for name in {*one.hot, *other.hot}:
        mine, theirs = one.hot.get(name), other.hot.get(name)
        if mine == theirs:
            continue
        values = space.hot.get(name, ())
        if name == "policy" or mine not in values or theirs not in values:
            far += _OTHER
        else:
            far += abs(values.index(mine) - values.index(theirs))
    return far


def nearest(points: Sequence[Point], best: Result | None, space: Space, rng: random.Random) -> Point:
    """The point that is nearest to the best one, by chance among equals; any where there is no best yet."""
    if best is None:
        return rng.choice(points)
    away = [distance(point, best.point, space) for point in points]
    return rng.choice([point for point, far in zip(points, away, strict=True) if far == min(away)])
