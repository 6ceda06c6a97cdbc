"""The virtual loop: when tokens come, when knobs act, and what happens when nothing can."""

import pytest

from workbench.engine.probe.scheduler import ProbeAsyncScheduler, ProbeScheduler
from workbench.engine.probe.wire import KnobChange
from workbench.simulate.bare import make_request, make_scheduler
from workbench.simulate.loop import StuckError, VirtualLoop


def tenth(parts):
    return 0.1


def test_tokens_come_at_the_ends_of_steps(model_folder):
    scheduler = make_scheduler(ProbeScheduler, model_folder)
    played = VirtualLoop(scheduler, tenth, [make_request("a", 20, 3, arrival=5.0)], start_s=2.0).run()
    assert played.tokens_s["a"] == pytest.approx([5.1, 5.2, 5.3])
    assert played.ended_s["a"] == pytest.approx(5.3)
    assert [(one.scheduled_s, one.end_s) for one in played.steps] == [
        pytest.approx((5.0 + i / 10, 5.1 + i / 10)) for i in range(3)
    ]
    assert [one.schedule_us for one in played.steps] == [0.0] * 3, "virtual time does not pass while it plans"
    assert played.hello.kv_blocks == 4000


def test_a_step_takes_what_its_parts_say(model_folder):
    scheduler = make_scheduler(ProbeScheduler, model_folder)
    seen = []

    def by_tokens(parts):
        seen.append([(one.request, one.tokens, one.context, one.prefill) for one in parts])
        return 0.001 * sum(one.tokens for one in parts)

    played = VirtualLoop(scheduler, by_tokens, [make_request("a", 300, 2)]).run()
    assert seen == [[("a", 300, 0, True)], [("a", 1, 300, False)]]
    assert played.tokens_s["a"] == pytest.approx([0.3, 0.301])


def test_two_steps_in_flight_delay_who_arrives_by_one_step_but_not_the_tokens(model_folder):
    scheduler = make_scheduler(ProbeAsyncScheduler, model_folder)
    requests = [make_request("a", 20, 6), make_request("b", 20, 1, arrival=0.15)]
    played = VirtualLoop(scheduler, tenth, requests, depth=2).run()
    assert played.tokens_s["a"] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    assert played.tokens_s["b"] == pytest.approx([0.4]), "the step from 0.2 s was planned at 0.1 s"


def test_of_the_changes_that_are_due_the_newest_acts_and_is_answered(model_folder):
    scheduler = make_scheduler(ProbeScheduler, model_folder)
    changes = [
        (at, KnobChange(i, budget, 0, 32, "chunked"))
        for i, (at, budget) in enumerate([(0, 50), (0, 40), (0.1, 9000)], 1)
    ]
    played = VirtualLoop(scheduler, tenth, [make_request("a", 100, 1)], changes).run()
    assert [sum(part.tokens for part in one.parts) for one in played.steps] == [40, 40, 20]
    assert [(one.revision, one.step, bool(one.error)) for one in played.replies] == [(2, 1, False), (3, 2, True)]


def test_it_stops_where_asked_and_goes_on(model_folder):
    scheduler = make_scheduler(ProbeScheduler, model_folder)
    loop = VirtualLoop(scheduler, tenth, [make_request("a", 20, 9), make_request("b", 20, 1, arrival=7.0)])
    assert len(loop.run(until_s=0.35).tokens_s["a"]) == 4
    assert loop.run().tokens_s["b"] == pytest.approx([7.1])


def test_who_is_aborted_gets_no_more_tokens_and_does_not_end(model_folder):
    scheduler = make_scheduler(ProbeScheduler, model_folder)
    played = VirtualLoop(scheduler, tenth, [make_request("a", 20, 50)], aborts=[(0.35, "a")]).run()
    assert len(played.tokens_s["a"]) == 3
    assert "a" not in played.ended_s
    assert not scheduler.requests


def test_cached_prompt_tokens_are_told(model_folder):
    scheduler = make_scheduler(ProbeScheduler, model_folder, prefix_cache=True)
    requests = [make_request(f"r{i}", 100, 2, arrival=float(i), shared=64, prefix_cache=True) for i in range(2)]
    played = VirtualLoop(scheduler, tenth, requests).run()
    assert played.cached == {"r0": 0, "r1": 64}


def test_requests_that_no_step_can_hold_are_an_error_that_names_them(model_folder):
    scheduler = make_scheduler(ProbeScheduler, model_folder, blocks=4, max_model_len=4096)
    with pytest.raises(StuckError, match=r"1 requests are left \(huge\)"):
        VirtualLoop(scheduler, tenth, [make_request("huge", 400, 2)]).run()
