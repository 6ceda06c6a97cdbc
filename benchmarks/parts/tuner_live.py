"""The tuner on a live engine, against every setting of a grid: one engine for the grid and for all searches.

The load is that of the scenario ``tuning``. A calibration of this machine seeds the searches where there is one; its
plays take no engine and are not counted. ``QUICK`` (0) measures so many settings only and searches once.
"""

from __future__ import annotations

import os
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any

from benchmarks.parts.stats import say
from benchmarks.parts.tuner_search import SEEDS, Grid, against, measure
from workbench.session import Workbench
from workbench.tune.goal import Goal
from workbench.tune.play.players import EnginePlayer
from workbench.tune.play.virtual import VirtualPlayer
from workbench.tune.search.best import best_of
from workbench.tune.search.prior import Prior, simulate, simulated_config
from workbench.tune.search.tuning import Allowance
from workbench.tune.space import Space
from workbench.tune.trial import Asked
from workbench.workload.scenario import load_scenario

SHARE = 1 / 3
_LIMITS = {"gap_p99_ms": 1000.0}
_GRID = {
    "policy": ("chunked", "decode_first", "qos"),
    "budget": (32, 64, 96, 128, 256, 512),
    "chunk": (64, 0),
    "max_running": (32,),
}


def live() -> dict[str, Any]:
    """Measure the grid once, search with five seeds."""
    quick = int(os.environ.get("QUICK", "0"))
    scenario = load_scenario("tuning")
    goal = Goal(("goodput",), _LIMITS, scenario.slo).check(scenario)
    space = Space.of(scenario, scenario.engine_config, goal, given=_GRID)
    priors = _priors(scenario, goal, space, SEEDS[: 1 if quick else None])
    with tempfile.TemporaryDirectory(prefix="wb-tuner-live-") as folder:
        runs = Path(folder)
        with Workbench.of(scenario, runs=runs) as bench:
            say("starting an engine")
            bench.start()
            player = EnginePlayer(scenario, goal, space, runs=runs, bench=bench)
            player.play(Asked(0, next(space.points()), 99))  # faults memory in
            if quick:
                some = [player.play(Asked(i, one, 0)) for i, one in enumerate(islice(space.points(), quick))]
                grid = Grid(some, best_of(some, goal), sum(one.engine_s for one in some))
            else:
                grid = measure(player, space, goal)
            allowance = Allowance(trials=len(list(space.points())), engine_s=SHARE * grid.engine_s)
            if quick:
                allowance = Allowance(trials=4)
            found = against(player, space, goal, grid, allowance, priors.get, SHARE, tuple(priors))
    prior = next(iter(priors.values()))
    return {
        "label": player.label,
        "prior_label": prior.results[0].label if prior is not None else "none: no calibration of this machine",
        "grid": grid.figures(),
        **found,
    }


def _priors(scenario: Any, goal: Goal, space: Space, seeds: tuple[int, ...]) -> dict[int, Prior | None]:
    """What a calibrated simulation of this machine says, by seed; before there is an engine that it would disturb."""
    config = simulated_config(space.config)
    if config is None:
        return dict.fromkeys(seeds)
    rough = Space(space.hot, config)
    player = VirtualPlayer(scenario, goal, rough)
    try:
        return {seed: _said(simulate(player, rough, goal, seed=seed), seed) for seed in seeds}
    finally:
        player.close()


def _said(prior: Prior, seed: int) -> Prior:
    top = prior.predicted(())[0]
    say(f"simulated, seed {seed}: {top.point.name} with {top.objective:.3g}/s")
    return prior
