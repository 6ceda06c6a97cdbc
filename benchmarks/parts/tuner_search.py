"""What the live and the simulated part of the tuner's benchmark share: a grid measured once, searches against it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.parts.stats import say
from workbench.tune.goal import Goal
from workbench.tune.search.best import best_of
from workbench.tune.search.prior import Prior
from workbench.tune.search.study import Study
from workbench.tune.search.tuning import Allowance, Progress, Tuning
from workbench.tune.space import Space
from workbench.tune.trial import Asked, Player, Result

GRID_SEED, SEEDS = 0, (1, 2, 3, 4, 5)
WITHIN = 0.05


@dataclass(frozen=True)
class Grid:
    """Every setting of a space, measured once.

    Attributes:
        results: one a setting.
        best: the feasible one with the best objective.
        engine_s: that all of them took together.
    """

    results: Sequence[Result]
    best: Result | None
    engine_s: float

    @property
    def values(self) -> Mapping[str, float]:
        """Objective of each setting by key; 0 where it broke a limit."""
        return {one.point.key: one.objectives[0] if one.feasible else 0.0 for one in self.results}

    def figures(self) -> dict[str, Any]:
        """How much there is to find: for a reader to judge whether the grid is hard."""
        values = sorted(self.values.values(), reverse=True)
        good = sum(value >= (1 - WITHIN) * values[0] for value in values)
        return {
            "settings": len(values),
            "feasible": sum(one.feasible for one in self.results),
            "within_5_pct_of_best": good,
            "best": None if self.best is None else {"setting": self.best.point.name, "goodput_per_s": values[0]},
            "engine_s": self.engine_s,
        }


def measure(player: Player, space: Space, goal: Goal, seed: int = GRID_SEED) -> Grid:
    """Play every setting to its end."""
    points, results = list(space.points()), []
    for number, point in enumerate(points):
        results.append(player.play(Asked(number, point, seed)))
        one = results[-1]
        what = f"{one.objectives[0]:.3g}" if one.objectives else one.error
        say(f"grid {number + 1}/{len(points)} {point.name}: {what}{'' if one.feasible else f' breaks {one.worst}'}")
    return Grid(results, best_of(results, goal), sum(one.engine_s for one in results))


def search(
    player: Player, space: Space, goal: Goal, grid: Grid, seed: int, allowance: Allowance, prior: Prior | None
) -> dict[str, Any]:
    """One search with a seed of its own for workload and sampler; what its pick is worth on the grid."""
    with tempfile.TemporaryDirectory(prefix="wb-tuner-") as folder:
        study = Study.create("bench", goal, space, seed=seed, root=Path(folder))
        tuning = Tuning(study, player, allowance, prior, open_loop=True, tell=_teller(seed))
        tuning.run()
    best = study.best
    top = grid.best.objectives[0] if grid.best is not None else float("nan")
    return {
        "seed": seed,
        "pick": None if best is None else best.point.name,
        "pick_vs_best": 0.0 if best is None else grid.values.get(best.point.key, 0.0) / top,
        "engine_seconds_share": study.engine_s / grid.engine_s,
        "trials": len(study.results),
        "stopped_early": sum(one.state == "stopped" for one in study.results),
        "why": tuning.why,
    }


def against(
    player: Player,
    space: Space,
    goal: Goal,
    grid: Grid,
    allowance: Allowance,
    prior_of: Callable[[int], Prior | None],
    share: float,
    seeds: Sequence[int] = SEEDS,
) -> dict[str, Any]:
    """Searches with several seeds; a seed is fine where its pick and its engine-seconds both are.

    Args:
        player: plays the trials, on what the grid was measured on.
        space: of the grid.
        goal: of both.
        grid: measured.
        allowance: of each search.
        prior_of: what a simulation says of a seed's workload.
        share: of the grid's engine-seconds that a search may take.
        seeds: of workloads and samplers; none is the grid's.
    """
    runs = [search(player, space, goal, grid, seed, allowance, prior_of(seed)) for seed in seeds]
    fine = [one for one in runs if one["pick_vs_best"] >= 1 - WITHIN and one["engine_seconds_share"] <= share]
    return {
        "seeds_ok": len(fine),
        "seeds": len(runs),
        "pick_vs_best": sorted(one["pick_vs_best"] for one in runs)[len(runs) // 2],
        "engine_seconds_share": max(one["engine_seconds_share"] for one in runs),
        "searches": runs,
    }


def _teller(seed: int) -> Callable[[Progress], None]:
    def tell(now: Progress) -> None:
        if now.result is not None:
            one = now.result
            what = one.error or (f"{one.objectives[0]:.3g}" if one.objectives else "nothing")
            fits = "" if one.feasible or one.state == "stopped" else f" breaks {one.worst}"
            say(f"seed {seed}, trial {one.number}: {one.point.name}: {what}{fits} ({one.engine_s:.1f} s)")

    return tell
