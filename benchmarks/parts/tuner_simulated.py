"""The tuner on simulated 8 x H100 with Llama-3.1-70B, against every setting of a grid.

The engine takes what aiconfigurator's measured kernel tables say, and the simulation that seeds the search takes the
roofline: the two differ by some per cent, as a calibrated simulation and a live engine do. Its virtual seconds hold no
engine and are reported apart. The same searches without it are reported as ``without_prior``.
"""

from __future__ import annotations

from typing import Any

from benchmarks.parts.stats import say
from benchmarks.parts.tuner_search import SEEDS, against, measure
from workbench.config import SLO, parse
from workbench.errors import ScenarioError
from workbench.simulated_config import SimulatedConfig
from workbench.tune.goal import Goal
from workbench.tune.play.virtual import VirtualPlayer
from workbench.tune.search.prior import Prior, simulate
from workbench.tune.search.tuning import Allowance
from workbench.tune.space import Space
from workbench.workload.scenario import Scenario

SHARE = 1 / 5
_CONFIG = {
    "model": "llama-3.1-70b",
    "gpu": "H100",
    "count": 8,
    "max_model_len": 16384,
    "max_num_batched_tokens": 8192,
}
_GRID = {
    "policy": ("chunked",),
    "budget": (256, 512, 1024, 2048, 4096, 8192),
    "chunk": (128, 256, 512, 1024, 2048, 0),
    "max_running": (256,),
}


def load() -> Scenario:
    """Chats, and a document of some 10,000 tokens now and then: near what this hardware serves in time."""
    data = {
        "name": "tuner_h100",
        "engine": {"engine": "simulated", **_CONFIG},
        "slo": {"gap_ms": 80, "ttft_ms": 2000},
        "streams": [
            {
                "class": "chat",
                "arrivals": {"kind": "poisson", "rate": 8, "count": 240},
                "prompt_tokens": {"kind": "lognormal", "median": 300, "p99": 2000, "min": 16, "max": 4000},
                "output_tokens": {"kind": "lognormal", "median": 120, "p99": 400, "min": 8, "max": 500},
            },
            {
                "class": "document",
                "start_s": 0.5,
                "arrivals": {"kind": "poisson", "rate": 0.8, "count": 24},
                "prompt_tokens": {"kind": "uniform", "min": 6000, "max": 14000},
                "output_tokens": 32,
            },
        ],
    }
    return parse(Scenario, data, error=ScenarioError)


def simulated() -> dict[str, Any]:
    """Measure the grid once, search with five seeds, with and without a simulation before."""
    scenario = load()
    goal = Goal(("goodput",), {"gap_p99_ms": 70.0, "ttft_p99_s.chat": 3.0}, parse(SLO, scenario.slo.model_dump()))
    goal.check(scenario)
    space = Space.of(scenario, SimulatedConfig(**_CONFIG, step_time="tables"), goal, given=_GRID)
    rough = Space.of(scenario, SimulatedConfig(**_CONFIG, step_time="roofline"), goal, given=_GRID)
    engine, roofline = VirtualPlayer(scenario, goal, space), VirtualPlayer(scenario, goal, rough)
    try:
        say(f"grid on {engine.label}")
        grid = measure(engine, space, goal)
        allowance = Allowance(trials=len(grid.results), engine_s=SHARE * grid.engine_s)
        priors: dict[int, Prior] = {}

        def prior_of(seed: int) -> Prior:
            say(f"prior of seed {seed} on {roofline.label}")
            priors[seed] = simulate(roofline, rough, goal, seed=seed)
            return priors[seed]

        found = against(engine, space, goal, grid, allowance, prior_of, SHARE)
        alone = against(engine, space, goal, grid, allowance, lambda _: None, SHARE)
    finally:
        engine.close()
        roofline.close()
    prior_s = sum(one.engine_s for prior in priors.values() for one in prior.results)
    return {
        "label": engine.label,
        "prior_label": roofline.label,
        "grid": grid.figures(),
        **found,
        "prior_virtual_s": prior_s / len(SEEDS),
        "without_prior": alone,
    }
