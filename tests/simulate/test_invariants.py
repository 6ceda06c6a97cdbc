"""What must hold under every policy, for every workload, on vLLM's own scheduler in virtual time."""

from collections import Counter, defaultdict

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from watched import WatchedAsyncScheduler, WatchedScheduler

from workbench.engine.probe.policies import POLICIES
from workbench.engine.probe.wire import KnobChange
from workbench.simulate.bare import make_request, make_scheduler
from workbench.simulate.loop import VirtualLoop

MAX_LEN, CEILING, SEQS = 192, 256, 6
quick = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def step_time(parts):
    return 0.01 + 0.001 * sum(part.tokens for part in parts)


requests = st.lists(
    st.tuples(
        st.integers(1, 160),  # prompt
        st.integers(1, 24),  # output
        st.sampled_from([0.0, 0.05, 0.3, 1.0]),  # arrival
        st.sampled_from([0, 1, 1, 2, 2]),  # class
    ),
    min_size=1,
    max_size=14,
)
pools = st.fixed_dictionaries(
    {
        "blocks": st.sampled_from([14, 20, 30, 200]),  # 13 hold the longest request
        "reserve_full": st.booleans(),
        "prefix_cache": st.booleans(),
    }
)


@st.composite
def knobs(draw, policies=tuple(POLICIES)):
    policy = draw(st.sampled_from(policies))
    return {
        "policy": policy,
        "budget": CEILING if policy == "monolithic" else draw(st.sampled_from([8, 40, 100, CEILING])),
        "chunk": draw(st.sampled_from([0, 16, 50])),
        "max_running": draw(st.integers(1, SEQS)),
        "prefill_every": draw(st.sampled_from([0, 3])),
        "target_gap_ms": draw(st.sampled_from([20.0, 60.0, 500.0])),
        "aging_s": draw(st.sampled_from([0.0, 0.4, 30.0])),
        "watermark": draw(st.sampled_from([0.0, 0.2])),
        "reserve_full": draw(st.booleans()),
        "prefix_cache": draw(st.booleans()),
        "cache_resets": 0,
    }


def play(model_folder, asked, changes, pool, depth=1, aborts=()):
    cls = WatchedAsyncScheduler if depth == 2 else WatchedScheduler
    scheduler = make_scheduler(cls, model_folder, budget=CEILING, max_model_len=MAX_LEN, seqs=SEQS, **pool)
    coming = [
        make_request(f"r{i:02}", prompt, output, arrival, priority, shared=32, prefix_cache=pool["prefix_cache"])
        for i, (prompt, output, arrival, priority) in enumerate(asked)
    ]
    sent = [(at, KnobChange(revision=i + 1, **one)) for i, (at, one) in enumerate(changes)]
    loop = VirtualLoop(scheduler, step_time, coming, sent, [(at, f"r{i:02}") for i, at in aborts], depth=depth)
    played = loop.run()
    assert not played.faults
    assert not any(reply.error for reply in played.replies)
    assert scheduler.used_blocks == 0
    return scheduler, played


def check(asked, played, aborted=()):
    """Every request ended with all its tokens, each computed at its place, in order of arrival within its class."""
    told, computed, first = Counter(), defaultdict(list), {}
    for step in played.steps:
        for part in step.parts:
            told[part.request] += part.emitted
            computed[part.request].append((part.context, part.tokens))
            first.setdefault(part.request, step.step)
    again = Counter(name for step in played.steps for name in step.preempted)
    for i, (prompt, output, _, _) in enumerate(asked):
        name = f"r{i:02}"
        if i in aborted:
            continue
        assert len(played.tokens_s[name]) == told[name] == output
        assert name in played.ended_s
        assert played.tokens_s[name] == sorted(played.tokens_s[name])
        starts = [k for k, (context, _) in enumerate(computed[name]) if k == 0 or not _follows(computed[name], k)]
        assert len(starts) <= again[name] + 1, "only a preemption makes a request begin again"
        last_context, last_tokens = computed[name][-1]
        assert last_context + last_tokens in (prompt + output - 1, prompt + output), "the last token is not computed"
        if not again[name]:
            assert sum(tokens for _, tokens in computed[name]) + computed[name][0][0] == last_context + last_tokens
    for priority in (0, 1, 2):  # of two that came at once, vLLM's priority queue takes the lower id first
        mine = [i for i, one in enumerate(asked) if one[3] == priority and i not in aborted]
        mine.sort(key=lambda i: asked[i][2])
        begun = [first[f"r{i:02}"] for i in mine]
        assert begun == sorted(begun), f"class {priority} is not first come first served"


def _follows(parts, k):
    return parts[k][0] == sum(parts[k - 1])


@pytest.mark.parametrize("depth", [1, 2])
@settings(quick, max_examples=40)
@given(
    asked=requests, changes=st.lists(st.tuples(st.sampled_from([0.0, 0.2, 0.5, 0.9]), knobs()), max_size=4), pool=pools
)
def test_whatever_policies_follow_each_other_no_request_and_no_token_is_lost(model_folder, asked, changes, pool, depth):
    scheduler, played = play(model_folder, asked, changes, pool, depth)
    check(asked, played)
    assert not any(in_flight for policy, _, in_flight in scheduler.preemptions if policy == "qos")


@pytest.mark.parametrize("depth", [1, 2])
@settings(quick, max_examples=60)
@given(asked=requests, one=knobs(("qos",)), pool=pools)
def test_under_qos_no_vip_and_nobody_with_output_in_flight_is_preempted(model_folder, asked, one, pool, depth):
    scheduler, played = play(model_folder, asked, [(0.0, one)], pool, depth)
    check(asked, played)
    assert [p for p in scheduler.preemptions if p[1] == 0 or p[2]] == []


@pytest.mark.parametrize("depth", [1, 2])
@settings(quick, max_examples=30)
@given(
    asked=requests,
    changes=st.lists(st.tuples(st.sampled_from([0.0, 0.3]), knobs()), max_size=2),
    pool=pools,
    aborts=st.dictionaries(st.integers(0, 13), st.sampled_from([0.0, 0.06, 0.3, 0.7, 1.5]), max_size=5),
)
def test_aborts_in_mid_run_leave_nothing_behind(model_folder, asked, changes, pool, aborts, depth):
    aborts = {i: at for i, at in aborts.items() if i < len(asked) and at >= asked[i][2]}
    _, played = play(model_folder, asked, changes, pool, depth, sorted(aborts.items(), key=lambda one: one[1]))
    check(asked, played, aborts)


@settings(quick, max_examples=15)
@given(asked=requests, one=knobs(), pool=pools, depth=st.sampled_from([1, 2]))
def test_the_same_workload_makes_the_same_trace(model_folder, asked, one, pool, depth):
    traces = [msgspec.msgpack.encode(play(model_folder, asked, [(0.0, one)], pool, depth)[1].steps) for _ in range(2)]
    assert traces[0] == traces[1]
