"""A scenario, a space and a player for tests of the search; nothing is computed."""

from __future__ import annotations

from workbench.config import EngineConfig, parse
from workbench.errors import ScenarioError
from workbench.tune.goal import FAILED, Goal
from workbench.tune.space import Space
from workbench.tune.trial import Asked, Result
from workbench.workload.request import Request, Workload
from workbench.workload.scenario import Scenario

CONFIG = EngineConfig(max_model_len=4096, max_num_batched_tokens=2048, max_num_seqs=16)
GOAL = Goal(("goodput",), {"gap_p99_ms": 200.0})
BUDGETS, CHUNKS = (64, 128, 256, 512, 1024, 2048), (64, 128, 256, 512, 0)


def a_scenario(**fields):
    data = {
        "name": "small",
        "streams": [
            {
                "class": "chat",
                "arrivals": {"kind": "constant", "rate": 2, "count": 10},
                "prompt_tokens": 64,
                "output_tokens": 16,
            },
            {
                "class": "document",
                "arrivals": {"kind": "at_once", "count": 1},
                "prompt_tokens": 1500,
                "output_tokens": 4,
            },
        ],
    }
    return parse(Scenario, data | fields, error=ScenarioError)


def a_space(**more):
    given = {"policy": ("chunked",), "budget": BUDGETS, "chunk": CHUNKS, "max_running": (16,)} | more.pop("given", {})
    return Space.of(a_scenario(), more.pop("config", CONFIG), more.pop("goal", GOAL), given=given, **more)


def a_workload(chats=10, output=16, every_s=0.5):
    requests = [Request(f"chat-{i}", "chat", 1, i * every_s, (1,) * 8, output) for i in range(chats)]
    return Workload(tuple(requests))


class Landscape:
    """Plays by formula: goodput grows with the budget, and so does the gap; a chunk cap bounds both.

    The best feasible point of the default space is budget 256 without a cap (or a larger one capped at 256).
    """

    label = "simulated · by formula, uncalibrated"

    def __init__(self, off=1.0, fails=(), limit=200.0):
        self.off, self.fails, self.limit, self.asked, self.closed = off, set(fails), limit, [], False

    def figures(self, point):
        budget = point.hot.get("budget", CONFIG.max_num_batched_tokens)
        chunk = point.hot.get("chunk") or budget
        step = min(budget, chunk)
        gap = 0.7 * step * self.off
        goodput = 4.0 * step / (step + 100.0) - (0.2 if step < budget else 0.0)
        return {"goodput_per_s": goodput, "gap_p99_ms": gap, "slack": 0.0, "duration_s": 10.0, "failed": 0.0}

    def play(self, asked: Asked, watch=None) -> Result:
        self.asked.append(asked)
        common = (asked.number, asked.point, asked.seed)
        if asked.point.name in self.fails:
            return Result(*common, "failed", engine_s=1.0, label=self.label, error="engine: died")
        figures = self.figures(asked.point)
        excess = {"gap_p99_ms": figures["gap_p99_ms"] / self.limit - 1, FAILED: 0.0}
        return Result(*common, "complete", figures, (figures["goodput_per_s"],), excess, 10.0, self.label)

    def close(self):
        self.closed = True
