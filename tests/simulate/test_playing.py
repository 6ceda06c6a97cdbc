"""A job in virtual time: closed loops, late knobs, what memory refuses, and that quick is only quick."""

import numpy as np
import pytest
from jobs import TENTH, Played, ask, job, knobs, played

from workbench import metrics
from workbench.config import SLO
from workbench.simulate.job import Activation
from workbench.simulate.loop import StuckError

POLICIES = ("chunked", "monolithic", "decode_first", "priority", "qos", "target_gap")


def ids(*words):
    return np.concatenate([np.arange(n) + start for start, n in words]).astype("<i4").tobytes()


def test_a_request_has_its_times_in_the_engine_and_none_at_a_client(model_folder):
    done = played(job([ask("a", at=2.0)]), model_folder)
    row = done.trace.requests.iloc[0]
    assert (row["planned_s"], row["sent_s"], row["status"], row["finish_reason"]) == (2.0, 2.0, "ok", "length")
    assert row[["first_s", "last_s", "done_s"]].tolist() == pytest.approx([2.1, 2.3, 2.3])
    assert row["output_tokens"] == 3
    tokens = done.trace.tokens
    assert tokens["client_s"].isna().all(), "there is no client"
    assert tokens["index"].tolist() == [0, 1, 2]
    assert tokens["engine_s"].tolist() == pytest.approx([2.1, 2.2, 2.3])
    assert tokens["step"].tolist() == [1, 2, 3]


def test_steps_and_batches_are_those_of_a_live_trace_without_what_nobody_measured(model_folder):
    steps = played(job([ask("a"), ask("b", at=0.1)]), model_folder).trace.steps
    assert steps["prefill_tokens"].tolist() == [20, 20, 0, 0]
    assert steps["decode_tokens"].tolist() == [0, 1, 2, 1]
    assert steps["start_s"].tolist() == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert steps["end_s"].tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4])
    measured = ["schedule_us", "probe_us", "memory_before_bytes", "memory_peak_bytes", "activation_bytes"]
    assert steps[measured].isna().all(axis=None)


def test_metrics_take_the_trace_as_it_is(model_folder):
    figures = metrics.summary(played(job([ask("a"), ask("b", at=0.1)]), model_folder).trace, SLO(gap_ms=50))
    assert figures["gap_p50_ms"] == pytest.approx(100)
    assert figures["ttft_max_s"] == pytest.approx(0.1)
    assert figures["stalls"] == 4
    assert figures["ok"] == 2


def test_of_a_closed_loop_the_next_comes_when_one_ends(model_folder):
    requests = [ask(f"r{i}", at=1.0) for i in range(4)] + [ask("open", at=0.0, cls="other")]
    done = played(job(requests, concurrency={"chat": 2}), model_folder)
    assert {name: round(s, 6) for name, s in done.requests("planned_s").items()} == {
        "open": 0.0,
        "r0": 1.0,
        "r1": 1.0,
        "r2": 1.3,
        "r3": 1.3,
    }
    assert done.trace.steps["running"].max() == 2


def test_a_closed_loop_goes_on_after_one_that_was_refused(model_folder):
    requests = [ask("r0", prompt=2000), ask("r1"), ask("r2")]
    done = played(job(requests, concurrency={"chat": 1}), model_folder)
    assert list(done.requests("status").values()) == ["error", "ok", "ok"]


def test_knobs_take_hold_at_their_virtual_time(model_folder):
    changes = [(0.25, knobs(budget=30, revision=1)), (9.0, knobs(revision=2))]
    done = played(job([ask("a", prompt=200, output=1, at=0.3), ask("b", output=5)], changes=changes), model_folder)
    steps = done.trace.steps
    assert steps["revision"].tolist() == [0, 0, 0] + [1] * 7
    assert (steps["prefill_tokens"] + steps["decode_tokens"])[3:].max() == 30
    table = done.trace.knobs
    assert table["revision"].tolist() == [0, 1, 2]
    assert table["sent_s"].tolist() == [0.0, 0.25, 9.0]
    assert table["applied_s"].tolist()[:2] == pytest.approx([0.0, 0.3])
    assert np.isnan(table["applied_s"][2]), "the play was over before"
    assert table["budget"].tolist() == [512, 30, 512]


def test_the_clock_stands_where_it_is_held_and_what_comes_then_comes_first(model_folder):
    done = Played(job([ask("a", at=0.0), ask("b", at=7.0)]), model_folder)
    assert done.to(5.0) is False
    assert done.loop.now == 5.0, "not 7: what is done at 5 s comes before b"
    done.loop.set_knobs(knobs(budget=10, revision=1))
    done.loop.join(ask("late", at=99.0))
    assert done.to() is True
    assert done.requests("planned_s") == {"a": 0.0, "late": 5.0, "b": 7.0}
    assert done.at("late") == [5.2, 5.3, 5.4], "20 tokens, 10 a step"
    assert done.trace.knobs["sent_s"].tolist() == [0.0, 5.0]


def test_a_cancelled_play_keeps_what_it_has(model_folder):
    done = Played(job([ask("a", output=1), ask("b", output=50), ask("c", at=30.0)], ahead=True, depth=2), model_folder)
    done.to(1.0)
    done.loop.cancel()
    assert done.to() is True
    assert done.requests("status") == {"a": "ok", "b": "cancelled", "c": "cancelled"}
    made = done.requests("output_tokens")
    assert made["b"] == len(done.at("b")) > 5
    assert made["c"] == 0
    assert done.loop.scheduler.kv_cache_manager.usage == 0


def test_what_no_memory_can_hold_is_an_outcome_and_not_an_error(model_folder):
    requests = [ask("fits", 150, 10), ask("pool", 155, 10), ask("length", 2000, 10)]
    done = played(job(requests, blocks=11), model_folder)  # 10 blocks of 16: one is vLLM's own
    assert done.requests("status") == {"fits": "ok", "pool": "error", "length": "error"}
    error = done.requests("error")
    assert error["pool"] == "oom: 165 tokens need 11 KV blocks of 16, the pool has 10"
    assert error["length"].startswith("too long: 2000 + 10 tokens, max_model_len is 1024")


@pytest.mark.parametrize(("ahead", "depth"), [(False, 1), (True, 2)])
def test_a_step_too_large_for_the_device_ends_its_largest_prompt_alone(model_folder, ahead, depth):
    requests = [ask("chat", 20, 9), ask("long", 400, 5, at=0.15), ask("short", 60, 5, at=0.15)]
    done = played(job(requests, most_step_tokens=100, ahead=ahead, depth=depth), model_folder)
    assert done.requests("status") == {"chat": "ok", "long": "error", "short": "ok"}
    assert done.requests("error")["long"].startswith("oom: a step of 461 tokens, the device has memory for 100;")
    assert done.trace.steps["prefill_tokens"].max() == 60
    assert len(done.at("chat")) == 9


def test_activation_is_estimated_by_the_tokens_of_a_step(model_folder):
    steps = played(job([ask("a")], activation=Activation(1000.0, 1.0, 7.0, 8)), model_folder).trace.steps
    assert steps["activation_bytes"].tolist() == [20_056, 1007, 1007]


def test_shared_beginnings_come_from_the_prefix_cache_only_where_there_is_one(model_folder):
    requests = [
        ask("a", 80, 2, tokens=ids((0, 64), (500, 16))),
        ask("b", 80, 2, at=1.0, tokens=ids((0, 64), (700, 16))),
        ask("c", 80, 2, at=2.0, tokens=ids((900, 80))),
    ]
    assert played(job(requests, prefix_cache=True), model_folder).requests("cached_tokens") == {"a": 0, "b": 64, "c": 0}
    assert played(job(requests), model_folder).requests("cached_tokens") == {"a": 0, "b": 0, "c": 0}


def test_a_pipeline_takes_the_next_step_before_the_first_is_through(model_folder, monkeypatch):
    monkeypatch.setattr("workbench.simulate.step_times._linear", lambda *_: lambda _parts: (0.4, 0.1))
    done = played(job([ask("a", 20, 2), ask("b", 20, 2, at=0.05)], depth=4), model_folder)
    assert done.at("a") == [0.4, 0.8]
    assert done.at("b") == [0.8, 1.2], "a waits for nobody, but the engine plans when an output is in"


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("ahead", "depth"), [(False, 1), (True, 2)])
def test_to_be_quick_changes_nothing(model_folder, policy, ahead, depth):
    rng = np.random.default_rng(5)
    requests = [
        ask(f"r{i:02}", int(rng.integers(1, 300)), int(rng.integers(1, 60)), round(float(rng.uniform(0, 3)), 3), i % 3)
        for i in range(24)
    ]
    fields = {"blocks": 60, "ahead": ahead, "depth": depth, "max_model_len": 512}
    fields["knobs"] = knobs(policy=policy, reserve_full=False, prefill_every=3)
    found = [played(job(requests, quick=quick, **fields), model_folder) for quick in (True, False)]
    assert found[0].trace.tables == found[1].trace.tables
    assert found[0].loop.facts == found[1].loop.facts
    assert set(found[0].requests("status").values()) == {"ok"}
    assert found[0].loop.facts["preemptions"] > 0, "a pool of 59 blocks is too small for all of them"


def test_what_nobody_can_run_is_said_and_what_is_known_is_kept(model_folder):
    done = Played(job([ask("a", at=0.0), ask("b", at=5.0)]), model_folder)
    done.loop.latest()
    done.loop.scheduler.schedule = lambda *_: type("Plan", (), {"num_scheduled_tokens": {}})()
    with pytest.raises(StuckError, match="2 requests are left"):
        done.loop.advance(None, lambda: False)
    done.loop.give_up("why")
    done.to(0.0)
    assert done.requests("status", "error") == {"a": ("unfinished", "why"), "b": ("unfinished", "why")}


def test_step_time_is_that_of_the_description(model_folder):
    priced = TENTH | {"prefill_token_s": 0.01, "prefill_pair_s": 0.001, "decode_s": 0.02, "decode_context_s": 0.005}
    done = played(job([ask("a", 4, 3)], step_time=priced), model_folder)
    # 4 prompt tokens see 1 + 2 + 3 + 4 tokens; then decodes that see 4 and 5 before them
    assert done.at("a") == pytest.approx([0.15, 0.15 + 0.14, 0.15 + 0.14 + 0.145])
