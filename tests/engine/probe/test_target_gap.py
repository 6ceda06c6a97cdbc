"""The policy ``target_gap`` on vLLM's own scheduler, in virtual time, with step times whose law is known."""

import math
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench.engine.probe import wire
from workbench.engine.probe.policies.step_time import Load
from workbench.engine.probe.scheduler import ProbeAsyncScheduler, ProbeScheduler
from workbench.simulate.bare import make_request, make_scheduler
from workbench.simulate.loop import VirtualLoop

TARGET_MS = 300.0
LONG = "long-0"


def law(load):
    """SmolLM2 on one CPU core, as it was measured."""
    if not load.prefill:
        return 30e-3 + 0.4e-3 * load.decodes
    return 6.5e-3 + 1.87e-3 * (load.prefill + load.decodes) + 0.93e-6 * (load.pairs + load.context)


def device(seed=0, noise=0.0, slow=lambda step: 1.0, law=law):
    """Step times with noise and drift, the same for the same seed."""
    rng, count = random.Random(seed), iter(range(10**9))
    return lambda parts: slow(next(count)) * law(Load.of(parts)) * math.exp(rng.gauss(0, noise))


def knobs(policy="target_gap", budget=4096, chunk=0, target_ms=TARGET_MS):
    return wire.KnobChange(
        revision=1, budget=budget, chunk=chunk, max_running=32, policy=policy, target_gap_ms=target_ms
    )


def play(folder, step_time, change=None, *, chats=8, prompts=(3000,), output=200, cls=ProbeScheduler, at_s=0.5):
    """Chats that decode throughout, and long prompts that come together."""
    scheduler = make_scheduler(cls, folder, budget=4096)
    requests = [make_request(f"chat-{i}", 12, output) for i in range(chats)]
    requests += [make_request(f"long-{i}", tokens, 1, at_s) for i, tokens in enumerate(prompts)]
    depth = 2 if cls is ProbeAsyncScheduler else 1
    loop = VirtualLoop(scheduler, step_time, requests, [(0.0, change or knobs())], depth=depth)
    played = loop.run()
    assert played.faults == []
    assert set(played.ended_s) == {request.request_id for request in requests}
    return played


def prefill_of(step):
    return sum(part.tokens for part in step.parts if part.prefill)


def mixed(played):
    """Steps with a long prompt beside decodes."""
    return [
        step
        for step in played.steps
        if any(part.request.startswith("long") for part in step.parts) and any(not part.prefill for part in step.parts)
    ]


def kept(played, target_ms=TARGET_MS):
    """Share of the chats' gaps beside the long prompts that are under the target."""
    steps = mixed(played)
    begin, end = steps[0].scheduled_s, steps[-1].end_s
    gaps = [
        b - a for name, at in played.tokens_s.items() if "chat" in name for a, b in pairwise(at) if begin < b <= end
    ]
    return np.mean(np.array(gaps) * 1e3 <= target_ms)


def tokens_per_s(played):
    steps = mixed(played)
    return sum(prefill_of(step) for step in steps) / (steps[-1].end_s - steps[0].scheduled_s)


@pytest.mark.parametrize(
    ("noise", "slow"),
    [
        pytest.param(0.0, lambda step: 1.0, id="still"),
        pytest.param(0.03, lambda step: 1.0, id="noise"),
        pytest.param(0.03, lambda step: 1.0 + 0.002 * step, id="drift"),
        pytest.param(0.03, lambda step: 1.4 if step > 50 else 1.0, id="jump"),
    ],
)
def test_gaps_stay_under_the_target_and_prefill_is_as_fast_as_with_the_best_fixed_budget(model_folder, noise, slow):
    prompts = (3000, 2000, 3000)
    ours = play(model_folder, device(1, noise, slow), prompts=prompts, output=400)
    assert kept(ours) >= 0.95
    best = 0.0
    for budget in (32, 48, 64, 80, 96, 128):
        fixed = play(model_folder, device(1, noise, slow), knobs("chunked", budget), prompts=prompts, output=400)
        if kept(fixed) >= 0.95:
            best = max(best, tokens_per_s(fixed))
    assert best > 0
    assert tokens_per_s(ours) >= 0.9 * best


def test_it_begins_with_a_small_chunk_and_is_there_after_a_few_steps(model_folder):
    steps = mixed(play(model_folder, device()))
    chunks = [prefill_of(step) for step in steps]
    assert chunks[0] == 16
    seen = 0
    for chunk, known in zip(chunks[1:], chunks, strict=False):
        seen = max(seen, known)
        assert chunk <= 2 * seen
    # The law allows 123 tokens at context 200: (300 - 6.5 - 15) ms at 1.87 ms + 0.2 ms each, less the margin.
    assert max(chunks[:10]) > 90


def test_chunks_shrink_as_the_context_grows(model_folder):
    steps = mixed(play(model_folder, device()))[10:-1]
    chunks = [prefill_of(step) for step in steps]
    assert chunks[-1] < 0.7 * chunks[0]
    seconds = [step.end_s - step.scheduled_s for step in steps]
    assert min(seconds) > 0.8 * TARGET_MS / 1e3, "each step is filled up"


@pytest.mark.parametrize("cls", [ProbeScheduler, ProbeAsyncScheduler])
def test_what_is_predicted_is_told_and_is_right(model_folder, cls):
    steps = mixed(play(model_folder, device(noise=0.02), cls=cls))[10:]
    ends = [step.end_s for step in steps]
    took = np.diff(ends) * 1e3
    predicted = np.array([step.predicted_ms for step in steps[1:]])
    assert np.median(np.abs(predicted / took - 1)) < 0.05
    assert np.all(predicted <= TARGET_MS)


@pytest.mark.parametrize("cls", [ProbeScheduler, ProbeAsyncScheduler])
def test_decodes_are_never_held(model_folder, cls):
    """A chat that comes after the long prompt decodes in every step as well, though it was let in behind the prompt."""
    scheduler = make_scheduler(cls, model_folder, budget=4096)
    requests = [make_request("chat-0", 12, 120), make_request(LONG, 3000, 1, 0.1), make_request("chat-1", 12, 60, 0.2)]
    depth = 2 if cls is ProbeAsyncScheduler else 1
    played = VirtualLoop(scheduler, device(), requests, [(0.0, knobs(chunk=64))], depth=depth).run()
    assert not played.faults
    beside = [step for step in played.steps if {"chat-1", LONG} <= {part.request for part in step.parts}]
    assert len(beside) > 20
    for name in ("chat-0", "chat-1"):
        mine = [step.step for step in played.steps if any(part.request == name for part in step.parts)]
        assert mine == list(range(mine[0], mine[-1] + 1)), f"{name} was left out of a step"


def test_a_prompt_that_nobody_decodes_beside_has_the_whole_budget(model_folder):
    played = play(model_folder, device(), chats=0, prompts=(3000,))
    assert [prefill_of(step) for step in played.steps] == [3000]


def test_a_target_below_what_decodes_take_lets_a_trickle_through(model_folder):
    """Prefill would wait for ever: 8 decodes take 33 ms, and a small chunk beside them 52 ms."""
    played = play(model_folder, device(), knobs(target_ms=20.0), prompts=(112,), output=200)
    steps = mixed(played)
    intervals = np.diff([step.step for step in steps]).tolist()
    assert intervals[intervals.index(4) :][:4] == [4, 8, 16, 32]
    assert max(intervals) == 32
    assert played.ended_s[LONG] < max(played.ended_s.values())


@pytest.mark.parametrize(("change", "most"), [(knobs(budget=50), 50), (knobs(chunk=40), 48)])
def test_budget_and_chunk_are_still_upper_bounds(model_folder, change, most):
    steps = mixed(play(model_folder, device(), change))
    assert max(sum(part.tokens for part in step.parts) for step in steps) == most


def test_several_prompts_share_what_fits(model_folder):
    played = play(model_folder, device(), prompts=(40,) * 12)
    assert kept(played) == 1.0
    assert max(sum(part.prefill for part in step.parts) for step in mixed(played)) > 1


def test_a_device_on_which_chunks_of_any_size_take_the_same_gets_large_ones(model_folder):
    played = play(model_folder, device(law=lambda load: 10e-3), knobs(target_ms=30.0), at_s=0.2)
    assert max(prefill_of(step) for step in mixed(played)) > 900


def test_requests_that_run_are_in_the_order_of_arrival_after_it(model_folder):
    scheduler = make_scheduler(ProbeScheduler, model_folder, budget=4096)
    requests = [make_request("chat-0", 12, 400), make_request(LONG, 3000, 1, 0.1), make_request("chat-1", 12, 400, 0.2)]
    later = wire.KnobChange(revision=2, budget=4096, chunk=16, max_running=32, policy="chunked")
    loop = VirtualLoop(scheduler, device(), requests, [(0.0, knobs(chunk=64)), (2.0, later)])
    loop.run(1.5)
    assert [one.request_id for one in scheduler.running] == ["chat-0", "chat-1", LONG]
    loop.run(2.5)
    assert [one.request_id for one in scheduler.running] == ["chat-0", LONG, "chat-1"]


@given(
    seed=st.integers(0, 2**32),
    target_ms=st.floats(1.0, 2000.0),
    noise=st.floats(0.0, 0.6),
    prompts=st.lists(st.integers(1, 3000), min_size=1, max_size=6),
    asynchronous=st.booleans(),
)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_request_ends_and_no_step_is_above_the_budget(
    model_folder, seed, target_ms, noise, prompts, asynchronous
):
    cls = ProbeAsyncScheduler if asynchronous else ProbeScheduler
    played = play(
        model_folder, device(seed, noise), knobs(target_ms=target_ms, budget=512), prompts=prompts, output=60, cls=cls
    )
    for step in played.steps:
        assert 0 < sum(part.tokens for part in step.parts) <= 512
    for i, tokens in enumerate(prompts):
        assert sum(p.tokens for s in played.steps for p in s.parts if p.request == f"long-{i}") == tokens
