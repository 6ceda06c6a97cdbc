"""A policy that fails: vLLM gets its step, every request is still there, and it is told once."""

import pytest
from stepping import drain, step

from workbench.engine.probe import policies
from workbench.engine.probe import scheduler as module
from workbench.engine.probe.policies import Policy
from workbench.engine.probe.policies.priority import Priority
from workbench.engine.probe.scheduler import ProbeScheduler
from workbench.engine.probe.wire import KnobChange
from workbench.simulate.bare import make_request, make_scheduler
from workbench.simulate.loop import Played


class Breaks(Policy):
    name = "qos"
    at = "before"

    def enter(self, scheduler):
        if self.at == "enter":
            raise KeyError("enter")

    def schedule(self, scheduler, knobs, stock):
        if self.at == "before":
            scheduler.grants["r-0"] = 0
            scheduler.scheduler_config.enable_chunked_prefill = False
            while scheduler.running:
                scheduler.running.pop()
            scheduler.waiting.clear()
            scheduler.max_num_scheduled_tokens = 1
            raise KeyError("before")
        if self.at == "never":
            return None
        plan = stock(False)
        if self.at == "twice":
            stock(False)
        if self.at == "after":
            raise KeyError("after")
        return plan

    def learn(self, step, seconds):
        if self.at == "learn":
            raise KeyError("learn")


class Once:
    def __init__(self, policy):
        self.change = KnobChange(1, 64, 0, 32, policy)

    def latest(self):
        change, self.change = self.change, None
        return change


@pytest.mark.parametrize("at", ["enter", "before", "never", "twice", "after", "learn"])
def test_a_policy_that_fails_is_replaced_by_stock_scheduling_and_told_once(model_folder, monkeypatch, at):
    monkeypatch.setitem(policies.POLICIES, "qos", type("Broken", (Breaks,), {"at": at}))
    scheduler = make_scheduler(ProbeScheduler, model_folder)
    for i in range(4):
        scheduler.add_request(make_request(f"r-{i}", 60, 5))
    step(scheduler)
    scheduler.add_request(make_request("late", 100, 5))
    played = Played()
    scheduler.connect(played, Once("qos"))
    plans = drain(scheduler)
    assert [fault.where for fault in played.faults] == ["policy qos, stock scheduling took over"]
    assert max(plan.total_num_scheduled_tokens for plan in plans) == 64
    assert scheduler.scheduler_config.enable_chunked_prefill
    assert not scheduler.requests


def test_an_error_of_vllms_own_schedule_goes_through(model_folder, monkeypatch):
    scheduler = make_scheduler(ProbeScheduler, model_folder)
    scheduler.connect(Played(), Once("qos"))
    monkeypatch.setattr(module.Scheduler, "schedule", lambda *_: {}["vllm's own"])
    with pytest.raises(KeyError, match="vllm's own"):
        scheduler.schedule()


def test_a_policy_that_cannot_leave_does_not_stop_the_next_one(model_folder, monkeypatch):
    monkeypatch.setattr(Priority, "leave", lambda *_: 1 / 0)
    scheduler = make_scheduler(ProbeScheduler, model_folder)
    played = Played()
    scheduler.add_request(make_request("r", 60, 5))
    scheduler.connect(played, Once("priority"))
    step(scheduler)
    scheduler.connect(played, Once("decode_first"))
    drain(scheduler)
    assert len(played.faults) == 1
    assert type(scheduler.waiting).__name__ == "FCFSRequestQueue"
    assert scheduler._hot_policy.name == "decode_first"
