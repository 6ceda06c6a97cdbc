"""The process that plays trials for Ray, without Ray: on a simulated engine (nothing is computed), over its pipe."""

from __future__ import annotations

from pathlib import Path

from workbench.run import RecordedRun
from workbench.simulated_config import SimulatedConfig
from workbench.tune.goal import Goal
from workbench.tune.ray.artefacts import pack, unpack
from workbench.tune.ray.lines import LineChild
from workbench.tune.ray.remote import Job, Order
from workbench.tune.trial import Asked, Point, Result
from workbench.workload.scenario import load_scenario

GOAL = Goal(limits={"gap_max_ms": 200.0})
JOB = Job(SimulatedConfig(model="qwen2.5-7b", max_num_batched_tokens=4096), load_scenario("chat_and_long"), GOAL)


def play(child, number, **more):
    order = Order(Asked(number, Point({"budget": 512}), 5), **more)
    child.tell({"play": order.as_dict()})
    assert child.hear(60) == {"begun": number}
    return Result.of_dict(child.hear(300)["result"])


def test_trials_are_played_judged_and_recorded_and_the_folder_goes_with_the_process(tmp_path):
    child = LineChild("workbench.tune.ray.trial_child")
    try:
        child.tell({"job": JOB.as_dict(), "cpus": 0})
        ready = child.hear(300)["ready"]
        assert (ready["label"], ready["pid"], ready["cpus"]) == ("simulated", child.pid, [])
        first, second = play(child, 0), play(child, 1, error_rate=0.0)
        unpack(pack(Path(first.run)), tmp_path)  # as it goes home
    finally:
        child.close(60)
    assert (first.state, first.number, second.number) == ("complete", 0, 1)
    assert first.figures == second.figures
    assert first.label.startswith("simulated · ")
    home = RecordedRun(tmp_path)
    assert home.meta["status"] == "complete"
    figures, objectives, excess = GOAL.judge(home.trace)
    assert (first.figures, first.objectives, first.excess) == (figures, objectives, excess)
    assert not Path(first.run).parent.exists()
