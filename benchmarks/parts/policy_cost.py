"""What each policy adds to vLLM's ``schedule()``: no model, no device, one scheduler a policy beside a stock one.

32 requests run: 31 decode and one computes a long prompt, four more wait; normal and offline ones. The schedulers
plan their steps in turn, in another order each time, so that what else the machine does hits all alike; the figure of
a policy is the median over the steps of its time less stock vLLM's for the same step.
``python -m benchmarks.parts.policy_cost`` prints them alone; ``STEPS`` (400) scales it.
"""

from __future__ import annotations

import gc
import os
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.outputs import ModelRunnerOutput

from benchmarks.parts.stats import answer
from workbench.engine.probe.policies import POLICIES
from workbench.engine.probe.scheduler import ProbeScheduler
from workbench.engine.probe.wire import KnobChange, Record
from workbench.simulate.bare import make_request, make_scheduler

RUNNING, WAITING, BUDGET, LONGEST = 32, 4, 256, 131_072
WARM_UP = 50  # steps that are not counted: the chats' own prefill, and what a policy learns first
_STEP_S = 0.05


class _Bench:
    """One scheduler at work; as the other end of its records it forgets them and sends one knob change."""

    dropped = 0

    def __init__(self, policy: str | None, folder: Path) -> None:
        budget = LONGEST if policy == "monolithic" else BUDGET
        cls = ProbeScheduler if policy else Scheduler
        self._scheduler = make_scheduler(
            cls, folder, budget=budget, max_model_len=LONGEST, seqs=RUNNING, blocks=2 * LONGEST // 16
        )
        self._change = KnobChange(1, budget, 0, RUNNING, policy, aging_s=1e9) if policy else None
        self._now = 0.0
        if policy:
            self._scheduler.clock = self._scheduler.wall = lambda: self._now
            self._scheduler.connect(self, self)
        for i in range(RUNNING - 1):
            self._scheduler.add_request(make_request(f"chat-{i}", 64, 5000, priority=1 + i % 2))
        self._scheduler.add_request(make_request("long", LONGEST - 10, 4, priority=2))
        for i in range(WAITING):
            self._scheduler.add_request(make_request(f"waiting-{i}", 64, 4, priority=2))

    def step(self) -> float:
        """Plan one step and give it its output; microseconds that the planning took."""
        begun = time.perf_counter()
        plan = self._scheduler.schedule()
        took = (time.perf_counter() - begun) * 1e6
        self._now += _STEP_S
        if not plan.num_scheduled_tokens:
            raise RuntimeError("policy cost: a step came out empty; expected 32 running requests in each")
        names = list(plan.num_scheduled_tokens)
        done = [[7] if not self._scheduler.requests[name].is_prefill_chunk else [] for name in names]
        self._scheduler.get_grammar_bitmask(plan)  # where the probe does its books
        result = ModelRunnerOutput(names, {name: i for i, name in enumerate(names)}, sampled_token_ids=done)
        self._scheduler.update_from_output(plan, result)
        return took

    def latest(self) -> KnobChange | None:
        """The one change, once."""
        change, self._change = self._change, None
        return change

    def send(self, record: Record) -> None:
        """Forget a record."""

    def fault(self, where: str, error: BaseException) -> None:
        """A policy that failed would be measured as stock."""
        raise RuntimeError(f"policy cost: {where}: {error}") from error


def policy_cost() -> dict[str, float]:
    """Microseconds a step over stock vLLM, by policy: median of the paired differences."""
    steps = int(os.environ.get("STEPS", "400"))
    with tempfile.TemporaryDirectory() as folder:
        names: list[str | None] = [None, *POLICIES]
        benches = {name: _Bench(name, Path(folder)) for name in names}
        took: dict[Any, list[float]] = {name: [] for name in names}
        gc.collect()
        gc.disable()
        try:
            for step in range(WARM_UP + steps):
                turn = step % len(names)
                for name in names[turn:] + names[:turn]:
                    microseconds = benches[name].step()
                    if step >= WARM_UP:
                        took[name].append(microseconds)
        finally:
            gc.enable()
    stock = took.pop(None)
    return {name: median(a - b for a, b in zip(mine, stock, strict=True)) for name, mine in took.items()}


us_over_stock = policy_cost


if __name__ == "__main__":
    answer({"us_over_stock": policy_cost(), "label": "live CPU, no model"})
