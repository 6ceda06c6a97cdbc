"""Hot knobs and step records of the probe, on vLLM's own scheduler in virtual time."""

import math
import time
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from stepping import drain, output_of, step

from workbench.config import Knobs
from workbench.engine.probe.books import Books
from workbench.engine.probe.scheduler import ProbeAsyncScheduler, ProbeScheduler
from workbench.simulate.bare import make_request, make_scheduler
from workbench.trace import table_of

CEILING = Knobs(budget=8192, max_running=32)


@pytest.fixture
def bench(collector, sink, model_folder):
    scheduler = make_scheduler(ProbeScheduler, model_folder)
    recording = collector.into(sink, 0.0, 0, CEILING)
    recording.__enter__()
    yield scheduler, collector, sink
    recording.__exit__(None, None, None)


def set_knobs(collector, revision, **changes):
    collector.send_knobs(revision, Knobs(**{**CEILING.model_dump(), **changes}))


def prefills(sink, request):
    return [row["tokens"] for row in sink.tables["batch"] if row["request"] == request and row["prefill"]]


def test_budget_acts_on_the_next_step(bench):
    scheduler, collector, sink = bench
    scheduler.add_request(make_request("cmpl-long-0-0-0a1b2c3d", 3000, 2))
    set_knobs(collector, 1, budget=1000)
    step(scheduler)
    set_knobs(collector, 2, budget=64)
    drain(scheduler)
    rows = sink.until("steps", 34)
    assert [row["prefill_tokens"] for row in rows][:3] == [1000, 64, 64]
    assert [row["revision"] for row in rows][:3] == [1, 2, 2]
    assert prefills(sink, "long-0") == [1000] + [64] * 31 + [2000 - 31 * 64]  # C2: ceil(2000 / 64) = 32 further steps
    assert len(prefills(sink, "long-0")) == 1 + math.ceil(2000 / 64)


def test_chunk_caps_each_request_but_not_one_that_is_alone(bench):
    scheduler, collector, sink = bench
    set_knobs(collector, 1, chunk=128)
    scheduler.add_request(make_request("a-0-0-0a1b2c3d", 300, 1))
    drain(scheduler)
    for name in ("b-0-0-0a1b2c3d", "c-0-0-0a1b2c3d"):
        scheduler.add_request(make_request(name, 300, 1))
    drain(scheduler)
    sink.until("steps", 4)
    assert prefills(sink, "a-0") == [300]
    assert prefills(sink, "b-0") == prefills(sink, "c-0") == [128, 128, 44]


def test_running_cap_holds_back_admission(bench):
    scheduler, collector, _ = bench
    set_knobs(collector, 1, max_running=2)
    for i in range(5):
        scheduler.add_request(make_request(f"chat-{i}", 16, 4))
    plans = drain(scheduler)
    assert max(len(plan.num_scheduled_tokens) for plan in plans) == 2


def test_monolithic_never_splits_a_prompt(bench):
    scheduler, collector, sink = bench
    set_knobs(collector, 1, policy="monolithic", budget=4096, chunk=128)
    for i in range(3):
        scheduler.add_request(make_request(f"long-{i}-0-0a1b2c3d", 3000, 2))
    drain(scheduler)
    sink.until("steps", 3)
    assert [prefills(sink, f"long-{i}") for i in range(3)] == [[3000]] * 3
    set_knobs(collector, 2, budget=64)
    scheduler.add_request(make_request("later-0-0-0a1b2c3d", 640, 1))
    drain(scheduler)
    sink.until("steps", 14)
    assert prefills(sink, "later-0") == [64] * 10, "chunked again after the switch"


def test_decode_first_lets_prefill_in_on_every_nth_step(bench):
    scheduler, collector, sink = bench
    scheduler.add_request(make_request("chat-0-0-0a1b2c3d", 16, 40))
    step(scheduler)
    set_knobs(collector, 1, policy="decode_first", prefill_every=5, budget=256)
    scheduler.add_request(make_request("long-0-0-0a1b2c3d", 1000, 1))
    drain(scheduler)
    sink.until("steps", 40)
    with_long = [row["step"] for row in sink.tables["batch"] if row["request"] == "long-0"]
    assert [b - a for a, b in pairwise(with_long)] == [5, 5, 5]


def test_strict_decode_first_starves_prefill_until_the_decodes_are_done(bench):
    scheduler, collector, sink = bench
    scheduler.add_request(make_request("chat-0-0-0a1b2c3d", 16, 30))
    step(scheduler)
    set_knobs(collector, 1, policy="decode_first")
    scheduler.add_request(make_request("long-0-0-0a1b2c3d", 1000, 1))
    drain(scheduler)
    sink.until("steps", 31)
    last_decode = max(row["step"] for row in sink.tables["batch"] if row["request"] == "chat-0")
    first_prefill = min(row["step"] for row in sink.tables["batch"] if row["request"] == "long-0")
    assert first_prefill > last_decode


@pytest.mark.parametrize(
    "wrong",
    [{"budget": 9000}, {"max_running": 33, "budget": 8192}, {"chunk": 5000}],
    ids=lambda wrong: next(iter(wrong)),
)
def test_a_change_outside_the_envelope_is_refused_by_the_probe_too(bench, wrong):
    scheduler, collector, sink = bench
    set_knobs(collector, 1, **wrong)
    scheduler.add_request(make_request("a-0-0-0a1b2c3d", 100, 1))
    drain(scheduler)
    rows = sink.until("steps", 1)
    assert rows[0]["revision"] == 0
    assert next(iter(wrong)) in collector.faults[-1]


def test_of_a_flood_of_changes_the_last_one_counts(bench):
    scheduler, collector, sink = bench
    for revision in range(1, 1001):
        collector.send_knobs(revision, Knobs(**{**CEILING.model_dump(), "budget": 32 + revision}))
    scheduler.add_request(make_request("a-0-0-0a1b2c3d", 2000, 1))
    drain(scheduler)
    rows = sink.until("steps", 2)
    assert (rows[0]["revision"], rows[0]["prefill_tokens"]) == (1000, 1032)


def test_rows_fit_the_schema_and_conserve_tokens(bench):
    scheduler, _, sink = bench
    for i in range(4):
        scheduler.add_request(make_request(f"chat-{i}-0-0a1b2c3d", 50, 20))
    drain(scheduler)
    steps, batch = sink.until("steps", 20), sink.tables["batch"]
    table_of("steps", steps)
    table_of("batch", batch)
    for i in range(4):
        mine = [row for row in batch if row["request"] == f"chat-{i}"]
        assert sum(row["emitted"] for row in mine) == 20
        assert sum(row["tokens"] for row in mine) == 50 + 19  # the last token is never computed
        assert [row["context"] for row in mine] == [0, *range(50, 69)]
    assert all(row["prefill_tokens"] + row["decode_tokens"] == 200 or row["prefills"] == 0 for row in steps)


def test_preempted_requests_are_named_and_compute_again(collector, sink, model_folder):
    scheduler = make_scheduler(ProbeScheduler, model_folder, blocks=12, max_model_len=160, reserve_full=False)
    with collector.into(sink, 0.0, 0, CEILING):
        for i in range(2):
            scheduler.add_request(make_request(f"chat-{i}-0-0a1b2c3d", 64, 60))
        drain(scheduler)
    preempted = [name for row in sink.tables["steps"] for name in row["preempted"]]
    assert preempted == ["chat-1"]
    again = prefills(sink, "chat-1")
    assert len(again) == 2
    assert again[0] == 64
    assert again[1] > 64, "after the preemption its output tokens are computed again too"


def test_without_a_folder_the_probe_is_silent_and_the_scheduler_works(monkeypatch, model_folder):
    monkeypatch.delenv("WORKBENCH_PROBE_FOLDER", raising=False)
    scheduler = make_scheduler(ProbeScheduler, model_folder)
    scheduler.add_request(make_request("a", 100, 3))
    assert len(drain(scheduler)) == 3


def test_a_fault_of_the_probe_does_not_reach_vllm(bench, monkeypatch):
    scheduler, collector, _ = bench
    monkeypatch.setattr(Books, "_note", lambda *_: 1 / 0)
    scheduler.add_request(make_request("a", 100, 3))
    assert len(drain(scheduler)) == 3
    deadline = time.monotonic() + 5
    while not collector.faults and time.monotonic() < deadline:
        time.sleep(0.01)
    assert "ZeroDivisionError" in collector.faults[0]


def test_the_async_scheduler_keeps_two_steps_in_flight(collector, sink, model_folder):
    scheduler = make_scheduler(ProbeAsyncScheduler, model_folder)
    with collector.into(sink, 0.0, 0, CEILING):
        scheduler.add_request(make_request("chat-0-0-0a1b2c3d", 40, 6))
        flying = [scheduler.schedule()]
        while scheduler.has_unfinished_requests():
            plan = scheduler.schedule()
            if plan.num_scheduled_tokens:
                flying.append(plan)
            done = flying.pop(0)
            scheduler.update_from_output(done, output_of(done))
    rows = [row for row in sink.tables["batch"] if row["request"] == "chat-0"]
    assert [row["prefill"] for row in rows] == [True] + [False] * 5
    assert [row["context"] for row in rows] == [0, 40, 41, 42, 43, 44]
    assert sum(row["emitted"] for row in rows) == 6


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    prompts=st.lists(st.integers(1, 700), min_size=1, max_size=8),
    outputs=st.integers(1, 12),
    budget=st.integers(8, 1024),
    chunk=st.sampled_from([0, 16, 100, 512]),
    policy=st.sampled_from(["chunked", "decode_first"]),
)
def test_no_step_goes_over_budget_or_chunk_and_every_request_ends(bench, prompts, outputs, budget, chunk, policy):
    scheduler, collector, _ = bench
    set_knobs(collector, 1, budget=budget, chunk=chunk, policy=policy, max_running=8)
    for i, prompt in enumerate(prompts):
        scheduler.add_request(make_request(f"r-{i}", prompt, outputs))
    asked = sum(prompt + outputs - 1 for prompt in prompts)
    computed = 0
    while scheduler.has_unfinished_requests():
        alone = scheduler.get_num_unfinished_requests() == 1
        plan = step(scheduler).plan
        computed += plan.total_num_scheduled_tokens
        assert plan.total_num_scheduled_tokens <= budget
        if chunk and not alone:
            assert max(plan.num_scheduled_tokens.values(), default=0) <= chunk
    assert computed == asked
