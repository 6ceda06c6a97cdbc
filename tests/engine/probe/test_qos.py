"""qos and priority: who overtakes whom, who yields, and what that costs, step by step."""

import pytest
from stepping import finish, step

from workbench.engine.probe.policies.classes import Classes
from workbench.engine.probe.scheduler import ProbeAsyncScheduler, ProbeScheduler
from workbench.engine.probe.wire import KnobChange
from workbench.simulate.bare import make_request, make_scheduler
from workbench.simulate.loop import Played, VirtualLoop


class Page:
    def __init__(self, **knobs):
        self.change = KnobChange(
            **{"revision": 1, "budget": 512, "chunk": 0, "max_running": 9, "policy": "qos"} | knobs
        )

    def latest(self):
        change, self.change = self.change, None
        return change


def started(model_folder, cls=ProbeScheduler, pool=None, **knobs):
    scheduler = make_scheduler(cls, model_folder, seqs=9, **(pool or {}))
    scheduler.connect(Played(), Page(**knobs))
    scheduler.wall = lambda: 0.0
    return scheduler


def busy(scheduler, chats=8):
    """Eight normal chats that decode, and an offline prompt in the middle of its prefill."""
    for i in range(chats):
        scheduler.add_request(make_request(f"chat-{i}", 16, 200, priority=1))
    step(scheduler)
    scheduler.add_request(make_request("long", 3000, 4, priority=2))
    step(scheduler)


def test_a_vip_has_its_prefill_in_the_next_step_though_every_slot_is_taken(model_folder):
    scheduler = started(model_folder)
    busy(scheduler)
    assert len(scheduler.running) == 9
    scheduler.add_request(make_request("vip", 64, 10, priority=0))
    plan = step(scheduler).plan
    assert plan.num_scheduled_tokens["vip"] == 64
    assert plan.num_scheduled_tokens["chat-0"] == 1, "who decodes goes on"
    assert "long" not in plan.num_scheduled_tokens
    assert plan.preempted_req_ids == {"long"}, "the lowest class gave its slot"


def test_with_a_slot_free_a_vip_overtakes_and_the_long_prompt_keeps_its_kv(model_folder):
    scheduler = started(model_folder)
    busy(scheduler, chats=7)
    before = scheduler.requests["long"].num_computed_tokens
    scheduler.add_request(make_request("vip", 700, 10, priority=0))
    steps = [step(scheduler).plan.num_scheduled_tokens for _ in range(3)]
    assert [one.get("vip") for one in steps] == [505, 195, 1], "512 less 7 decodes, then the rest"
    assert ["long" in one for one in steps] == [False, False, True]
    assert scheduler.requests["long"].num_computed_tokens > before == 505


def test_two_steps_in_flight_and_a_vip_still_comes_next(model_folder):
    scheduler = started(model_folder, ProbeAsyncScheduler)
    busy(scheduler)
    flying = scheduler.schedule()
    assert "long" in flying.num_scheduled_tokens
    scheduler.add_request(make_request("vip", 64, 10, priority=0))
    assert scheduler.schedule().num_scheduled_tokens["vip"] == 64


def test_who_has_output_in_flight_is_first_kept_out_of_a_step_and_preempted_after(model_folder):
    scheduler = started(model_folder, ProbeAsyncScheduler, max_running=2)
    for name in ("a", "b"):
        scheduler.add_request(make_request(name, 16, 200, priority=2))
    step(scheduler)
    first = scheduler.schedule()
    scheduler.add_request(make_request("vip", 64, 10, priority=0))
    second = scheduler.schedule()
    assert second.num_scheduled_tokens == {"a": 1}, "b came last of two with equal work"
    assert not second.preempted_req_ids
    finish(scheduler, first)
    third = scheduler.schedule()
    assert third.num_scheduled_tokens == {"a": 1, "vip": 64}
    assert third.preempted_req_ids == {"b"}
    assert scheduler.requests["b"].num_output_tokens == 2, "the token that was in flight arrived"


def test_under_priority_a_vip_waits_for_the_budget_that_a_long_prefill_leaves(model_folder):
    scheduler = started(model_folder, policy="priority")
    busy(scheduler, chats=6)
    scheduler.add_request(make_request("normal", 64, 10, arrival=0.1, priority=1))
    scheduler.add_request(make_request("vip", 64, 10, arrival=0.2, priority=0))
    plans = [step(scheduler).plan.num_scheduled_tokens for _ in range(6)]
    first = next(i for i, plan in enumerate(plans) if "vip" in plan)
    assert first == 4, "2,494 tokens are left of the prompt, 506 a step: the fifth has room"
    assert [plan.get("vip") for plan in plans[4:]] == [36, 28]
    assert [plan.get("normal") for plan in plans[4:]] == [None, 64]


def test_priority_lets_the_highest_class_in_first_and_preempts_the_lowest(model_folder):
    pool = {"blocks": 12, "max_model_len": 160, "reserve_full": False}
    scheduler = started(model_folder, pool=pool, policy="priority", reserve_full=False)
    scheduler.add_request(make_request("offline", 64, 60, priority=2))
    scheduler.add_request(make_request("vip", 64, 60, priority=0))
    names = [name for _ in range(40) for name in step(scheduler).plan.preempted_req_ids]
    assert names == ["offline"]
    assert scheduler.requests.get("vip") is None or scheduler.requests["vip"].num_preemptions == 0


@pytest.mark.parametrize("policy", ["qos", "priority"])
def test_the_queues_are_vllms_own_again_after_the_switch_back(model_folder, policy):
    scheduler = make_scheduler(ProbeScheduler, model_folder, seqs=1)
    requests = [
        make_request(n, 16, 3, arrival=i, priority=p) for i, (n, p) in enumerate([("a", 0), ("b", 2), ("c", 1)])
    ]
    change = {"budget": 512, "chunk": 0, "max_running": 1}
    changes = [(2.0, KnobChange(1, policy=policy, **change)), (4.0, KnobChange(2, policy="chunked", **change))]
    played = VirtualLoop(scheduler, lambda parts: 3.0, requests, changes).run()
    first = {part.request: step.step for step in reversed(played.steps) for part in step.parts}
    assert sorted(first, key=first.get) == ["a", "b", "c"], "c came last, and its class does not count any more"
    assert type(scheduler.waiting).__name__ == "FCFSRequestQueue"


def test_only_as_many_vips_run_as_the_pool_holds_at_their_longest(model_folder):
    pool = {"blocks": 14, "max_model_len": 192}
    scheduler = started(model_folder, pool=pool)
    for i in range(3):  # 32 + 64 tokens: 6 of 13 blocks each
        scheduler.add_request(make_request(f"vip-{i}", 32, 64, priority=0))
    assert sorted(step(scheduler).plan.num_scheduled_tokens) == ["vip-0", "vip-1"]


def test_an_offline_request_counts_as_normal_once_it_is_old_enough(model_folder):
    def order(aging_s):
        scheduler = make_scheduler(ProbeScheduler, model_folder, seqs=1)
        requests = [make_request("offline", 16, 2, arrival=0.1, priority=2)]
        requests += [make_request(f"chat-{i}", 16, 2, arrival=i * 0.5, priority=1) for i in range(12)]
        knobs = KnobChange(1, 512, 0, 1, "qos", aging_s=aging_s)
        played = VirtualLoop(scheduler, lambda parts: 0.5, requests, [(0.0, knobs)]).run()
        return sorted(played.ended_s, key=played.ended_s.get).index("offline")

    assert order(0.0) == 12, "never: all the chats go first"
    assert 0 < order(2.0) < 6


def test_classes_beyond_the_three_are_the_nearest():
    classes = Classes(now=100.0, aging_s=30.0)
    made = [make_request("r", 4, 1, arrival, priority) for arrival, priority in [(99, -3), (99, 7), (60, 2), (60, 0)]]
    assert [classes.of(one) for one in made] == [0, 2, 1, 0]


def test_who_yields_is_the_lowest_class_then_who_did_least_then_who_came_last():
    running = []
    for name, priority, work in [("v", 0, 1), ("n", 1, 50), ("o1", 2, 9), ("o2", 2, 5), ("o3", 2, 5)]:
        request = make_request(name, 100, 1, priority=priority)
        request.num_computed_tokens = work
        running.append(request)

    def below(request):
        return [one.request_id for one in Classes(0.0, 0.0).below(request, running)]

    assert below(make_request("new", 4, 1, priority=0)) == ["o3", "o2", "o1", "n"]
    assert below(make_request("new", 4, 1, priority=1)) == ["o3", "o2", "o1"]
    assert below(make_request("new", 4, 1, priority=2)) == []
    assert below(running[2]) == ["o3", "o2"]
    assert below(running[0]) == ["o3", "o2", "o1", "n"]
