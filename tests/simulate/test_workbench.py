"""A workbench on a simulated engine: the same runs, tables and figures as on a live one, in virtual time."""

import time

import pandas as pd
import pytest

from workbench import Workbench
from workbench.workload.scenario import load_scenario


@pytest.fixture(scope="module")
def bench(tmp_path_factory, shared_simulator):
    fields = {"engine": "simulated", "gpu": "H100", "count": 8, "enable_prefix_caching": True, "max_num_seqs": 32}
    with Workbench("llama-3.1-70b", runs=tmp_path_factory.mktemp("runs"), **fields) as bench:
        yield bench.start()


def test_a_run_has_the_tables_of_a_live_one(bench):
    run = bench.run("chat_and_long")
    assert run.wait(60)
    assert run.meta["label"] == "simulated"
    assert run.meta["engine"]["simulated"]["step_time_label"] == "roofline, uncalibrated"
    assert set(run.requests["status"]) == {"ok"}
    assert run.elapsed_s == pytest.approx(run.trace.requests["done_s"].max()), "virtual seconds, not those on the wall"
    assert run.memory.empty, "the memory of the process that simulates says nothing"
    assert run.mfu["mfu"].between(0, 1).all()
    assert run.trace.requests["output_tokens"].sum() == sum(r.output_tokens for r in run.workload.requests)


def test_the_same_workload_makes_the_same_run_also_with_a_prefix_cache(bench):
    runs = []
    for _ in range(2):
        runs.append(bench.run("shared_prefix"))
        assert runs[-1].wait(60)
    one, other = (run.trace.requests for run in runs)
    pd.testing.assert_frame_equal(one, other)
    assert (one["cached_tokens"] > 0).any()


def test_a_setting_takes_hold_at_its_virtual_time(bench):
    scenario = load_scenario("policies")
    at_s = 0.5
    late = scenario.model_copy(update={"settings_at_s": at_s})
    setting = scenario.settings[-1]
    run = bench.run(late, setting=setting)
    assert run.wait(60)
    after = run.steps[run.steps["revision"] > run.steps["revision"].min()]
    before = run.steps[run.steps["revision"] == run.steps["revision"].min()]
    assert before["scheduled_s"].max() <= at_s <= after["scheduled_s"].min()
    assert set(run.steps.loc[after.index, "revision"]) == {before["revision"].iloc[0] + 1}


def test_policies_are_compared_and_the_knobs_put_back(bench):
    before = bench.engine.knobs
    begun = time.monotonic()
    runs = bench.compare_policies("policies", ["chunked", "qos"])
    assert time.monotonic() - begun < 60
    assert runs.label == "simulated"
    assert list(runs.traces) == ["chunked", "qos"] or len(runs) == 2
    assert bench.engine.knobs == before


def test_code_makes_it_again(bench):
    bench.knobs(budget=512)
    begin, rest = bench.code().split("wb.start()")
    lines = {}
    exec(begin, lines)
    assert lines["wb"].config == bench.config
    assert "budget=512" in rest
    assert bench.serve_command().startswith("vllm serve meta-llama/Llama-3.1-70B-Instruct ")
