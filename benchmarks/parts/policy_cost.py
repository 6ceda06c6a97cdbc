"""What each policy adds to vLLM's ``schedule()``: no model, no device, one scheduler a policy beside a stock one.

32 requests run: 31 decode and one computes a long prompt, four more wait; normal and offline ones. Two policies would
keep that prompt out or compute it at once, and stock planned more than they: these get 32 that decode, as does a
second stock scheduler. All plan their steps in turn, in random order, so that what else the machine does hits all
alike; the figure of a policy is the median over the steps of its time less stock vLLM's for the same step.
``python -m benchmarks.parts.policy_cost`` prints them alone; ``STEPS`` (400) scales it.
"""

from __future__ import annotations

import gc
import os
import random
import tempfile
import time
from pathlib import Path
from statistics import median

from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.outputs import ModelRunnerOutput

from benchmarks.parts.stats import answer
from workbench.engine.probe.policies import POLICIES
from workbench.engine.probe.scheduler import ProbeScheduler
from workbench.engine.probe.wire import KnobChange, Record
from workbench.simulate.bare import make_request, make_scheduler

RUNNING, WAITING, BUDGET, LONGEST = 32, 4, 256, 131_072
WARM_UP = 50  # steps that are not counted: the chats' own prefill, and what a policy learns first
WHOLE = ("monolithic", "decode_first")  # policies that do not compute a prompt in chunks beside decodes
STOCK, STOCK_DECODES = "stock", "stock, decodes only"
_STEP_S = 0.05
_CHANGE_AT = 20  # steps; chunked before that


class _Bench:
    """One scheduler at work; as the other end of its records it forgets them and sends one knob change."""

    dropped = 0

    def __init__(self, policy: str | None, folder: Path, chunks: bool) -> None:
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
        for i in range(RUNNING - chunks):
            self._scheduler.add_request(make_request(f"chat-{i}", 64, 5000, priority=1 + i % 2))
        if not chunks:
            return
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
        """The one change, once, when all run."""
        if self._now < _CHANGE_AT * _STEP_S:
            return None
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
        names = [*POLICIES, STOCK, STOCK_DECODES]
        benches = {
            name: _Bench(name if name in POLICIES else None, Path(folder), name not in (*WHOLE, STOCK_DECODES))
            for name in names
        }
        took: dict[str, list[float]] = {name: [] for name in names}
        shuffle = random.Random(0).shuffle
        gc.collect()
        gc.disable()
        try:
            for step in range(WARM_UP + steps):
                shuffle(names)
                for name in names:
                    microseconds = benches[name].step()
                    if step >= WARM_UP:
                        took[name].append(microseconds)
        finally:
            gc.enable()
    against = {name: took[STOCK_DECODES if name in WHOLE else STOCK] for name in POLICIES}
    return {name: median(a - b for a, b in zip(took[name], against[name], strict=True)) for name in POLICIES}


if __name__ == "__main__":
    answer({"us_over_stock": policy_cost(), "label": "live CPU, no model"})
