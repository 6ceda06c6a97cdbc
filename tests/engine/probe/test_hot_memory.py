"""The knobs of the KV memory, and the prefix cache, while the scheduler runs."""

import pytest
from stepping import drain, step
from vllm.v1.core.sched.scheduler import Scheduler

from workbench.engine.probe.scheduler import ProbeScheduler
from workbench.engine.probe.wire import KnobChange
from workbench.simulate.bare import make_request, make_scheduler
from workbench.simulate.loop import Played

POOL = {"blocks": 12, "max_model_len": 160}  # 11 blocks of 16 tokens for requests


class Knobs:
    def __init__(self, scheduler):
        self.sent, self.change, self.played = 0, None, Played()
        scheduler.connect(self.played, self)

    def set(self, **changes):
        self.sent += 1
        self.change = KnobChange(
            **{"revision": self.sent, "budget": 64, "chunk": 0, "max_running": 32, "policy": "chunked"} | changes
        )

    def latest(self):
        change, self.change = self.change, None
        return change


@pytest.fixture
def cached(model_folder):
    scheduler = make_scheduler(ProbeScheduler, model_folder, prefix_cache=True)
    return scheduler, Knobs(scheduler)


def ask(scheduler, name, prompt=96):
    """Tokens that a request has to compute of a prompt that all share."""
    scheduler.add_request(make_request(name, prompt, 2, shared=prompt, prefix_cache=True))
    return sum(plan.num_scheduled_tokens[name] for plan in drain(scheduler)) - 1


@pytest.mark.parametrize(("reserve", "admitted"), [(True, 1), (False, 2)])
def test_reserve_full_lets_a_request_in_only_with_room_for_its_whole_prompt(model_folder, reserve, admitted):
    scheduler = make_scheduler(ProbeScheduler, model_folder, **POOL)
    Knobs(scheduler).set(reserve_full=reserve)
    for name in ("a", "b"):
        scheduler.add_request(make_request(name, 100, 2))  # 7 blocks each
    step(scheduler)
    step(scheduler)
    assert len(scheduler.running) == admitted


@pytest.mark.parametrize(("watermark", "admitted"), [(0.0, 2), (0.5, 1)])
def test_watermark_keeps_blocks_free_when_a_request_is_let_in(model_folder, watermark, admitted):
    scheduler = make_scheduler(ProbeScheduler, model_folder, **POOL)
    Knobs(scheduler).set(watermark=watermark)
    for name in ("a", "b"):
        scheduler.add_request(make_request(name, 60, 20))  # 4 blocks each; 6 of 12 are to stay free
    step(scheduler)
    step(scheduler)
    assert len(scheduler.running) == admitted


def test_prefix_cache_off_computes_all_of_a_new_prompt_and_on_again_finds_the_old_blocks(cached):
    scheduler, knobs = cached
    assert ask(scheduler, "first") == 96
    assert ask(scheduler, "second") == 96 - 80, "5 of 6 blocks: the last token is always computed"
    scheduler.add_request(make_request("before", 96, 2, shared=96, prefix_cache=True))
    knobs.set(prefix_cache=False)  # after the request, before the step that first sees it
    assert sum(plan.num_scheduled_tokens["before"] for plan in drain(scheduler)) - 1 == 96
    assert ask(scheduler, "third") == 96
    knobs.set(prefix_cache=True)
    assert ask(scheduler, "fourth") == 16


def test_a_reset_empties_the_cache_once_and_one_that_cannot_be_done_is_told(cached):
    scheduler, knobs = cached
    ask(scheduler, "first")
    knobs.set(cache_resets=1)
    assert ask(scheduler, "second") == 96
    knobs.set(cache_resets=1, chunk=50)
    assert ask(scheduler, "third") == 16, "the same count is no new reset"
    assert knobs.played.faults == []
    scheduler.add_request(make_request("running", 96, 9, shared=96, prefix_cache=True))
    step(scheduler)
    knobs.set(cache_resets=2)
    drain(scheduler)
    assert [fault.where for fault in knobs.played.faults] == ["prefix cache reset"]
    assert "1 requests hold KV blocks" in knobs.played.faults[0].error


@pytest.mark.parametrize(
    "wrong", [{"watermark": 0.7}, {"watermark": -0.1}, {"target_gap_ms": 0.0}, {"aging_s": -1.0}, {"policy": "fastest"}]
)
def test_what_cannot_be_applied_is_refused_and_nothing_changes(model_folder, wrong):
    scheduler = make_scheduler(ProbeScheduler, model_folder)
    knobs = Knobs(scheduler)
    knobs.set(**wrong)
    scheduler.add_request(make_request("a", 20, 2))
    drain(scheduler)
    assert next(iter(wrong)) in knobs.played.replies[0].error
    assert knobs.played.steps[0].revision == 0


def test_without_the_workbenchs_folder_each_step_is_what_vllm_alone_would_do(monkeypatch, model_folder):
    monkeypatch.delenv("WORKBENCH_PROBE_FOLDER", raising=False)
    plans = []
    for cls in (Scheduler, ProbeScheduler):
        scheduler = make_scheduler(cls, model_folder, **POOL, reserve_full=False)
        for i in range(6):
            scheduler.add_request(make_request(f"r{i}", 20 + 20 * i, 40, priority=i % 3))
        plans.append([(plan.num_scheduled_tokens, plan.preempted_req_ids) for plan in drain(scheduler)])
    assert plans[0] == plans[1]
    assert any(preempted for _, preempted in plans[0]), "the pool is small enough to matter"
