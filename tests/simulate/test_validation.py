"""Validation: a run at the calibrated prices is foretold as it was; a slower one is not, and off by as much."""

import json
from dataclasses import replace

import numpy as np
import pytest
from live_runs import InProcess, ask, asks, knobs, live, meta, slower

from workbench.errors import InputError, SeenRunError
from workbench.simulate import replay
from workbench.simulate.calibration import Calibration, errors_of
from workbench.simulate.fitting import fit
from workbench.simulate.hardware_setup import Setup
from workbench.simulate.made_up_files import write_tokenizer
from workbench.simulate.measured import delays
from workbench.simulate.replay import job_of, prompts_of
from workbench.simulate.steptime.calibrated import Calibrated
from workbench.simulate.steptime.varied import Varied
from workbench.simulate.validation import METRICS, checked, figures, validate
from workbench.trace import TABLES, Trace, table_of
from workbench.workload.build import build_workload
from workbench.workload.scenario import Scenario

LOOP = {
    "name": "made",
    "engine": {"max_model_len": 1024},
    "streams": [
        {"class": "chat", "arrivals": {"kind": "concurrency", "in_flight": 2, "count": 7}, "prompt_tokens": 20}
        | {"output_tokens": 9}
    ],
}


@pytest.fixture(scope="module")
def calibration(model_folder):
    # Few and many streams, three budgets: what tells the prices apart.
    shapes = [(64, 6, 500), (128, 3, 700), (200, 8, 300), (512, 2, 600)]
    return fit(
        [
            live(model_folder, asks(i, count, long), f"seen-{i}", knobs=knobs(budget))
            for i, (budget, count, long) in enumerate(shapes)
        ]
    )


@pytest.fixture
def simulator(model_folder):
    return InProcess(model_folder)


def test_the_calibration_took_the_delays_of_its_runs(calibration):
    assert calibration.delays["admission_s"] == pytest.approx(0.012)
    assert calibration.delays["delivery_s"] == pytest.approx(0.006)
    assert calibration.residual_pct["decode"] < 0.01


def test_a_run_at_the_calibrated_prices_is_foretold_as_it_was(calibration, simulator, model_folder):
    changes = [(0.5, knobs(96, "decode_first", 1, prefill_every=2)), (1.2, knobs(512, "qos", 2, chunk=50))]
    run = live(model_folder, asks(9, 5, 610), "new", knobs=knobs(300), changes=changes)
    found = validate(run, calibration, simulator, draws=2)
    assert set(found.error_pct) == set(METRICS) - {"long_ttft"}  # no prompt of 1,000 tokens
    assert max(abs(error) for error in found.error_pct.values()) < 0.5
    assert found.requests[["ttft_error_pct", "end_error_pct"]].abs().max().max() < 0.5
    assert found.requests.loc["long-0", "end_measured_s"] > found.requests.loc["long-0", "ttft_measured_s"] > 1
    assert len(simulator.jobs) == 2
    assert found.faults == ()


def test_a_run_on_a_machine_that_has_become_slower_is_off_by_as_much(calibration, simulator, model_folder):
    run = live(model_folder, asks(3), "new", prices=slower(1.25), knobs=knobs(200))
    error = validate(run, calibration, simulator, draws=1).error_pct
    for name in ("engine_gap_p50", "gap_p50", "gap_max"):
        assert error[name] == pytest.approx(-20, abs=0.7)
    assert error["throughput"] == pytest.approx(25, abs=2)


def test_later_arrivals_of_a_closed_loop_are_foretold_not_copied(calibration, simulator, model_folder):
    requests = [ask(f"chat-{i}", 20, 9) for i in range(7)]
    run = live(model_folder, requests, "new", concurrency={"chat": 2}, meta={"workload": {"scenario": LOOP}})
    found = validate(run, calibration, simulator, draws=1)
    assert found.requests["planned_s"].max() > 0.5  # the last goes out when others have ended
    assert {one.arrival_time for one in job_of(run, Varied(Calibrated(calibration))).requests} == {0.0}
    assert simulator.jobs[0].concurrency == {"chat": 2}
    assert abs(found.error_pct["makespan"]) < 0.5


def test_nothing_of_the_outcome_reaches_the_simulator(calibration, model_folder):
    run = live(model_folder, asks(2), "new")
    other = live(model_folder, asks(2), "new", prices=slower(3), admission_s=0.4, delivery_s=0.2)
    model = Varied(Calibrated(calibration))
    assert job_of(run, model) == job_of(other, model)


def test_a_run_that_was_fitted_is_refused_by_name(calibration, simulator, model_folder):
    with pytest.raises(SeenRunError, match="run to validate: got 'seen-1', expected one that the calibration was not"):
        validate(live(model_folder, asks(1), "seen-1"), calibration, simulator)
    assert simulator.jobs == []


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"label": "simulated"}, "got 'simulated', expected live runs"),
        ({"status": "cancelled"}, "run new: got 'cancelled', expected a run that is complete"),
        ({"machine": {"processor": "Made-up 9000", "usable_cores": 64}}, "got 'usable_cores 64, not 2'"),
        ({"resolved": {"kv_blocks": 0}}, "no record of its KV blocks"),
        ({"resolved": {"prefix_caching": True}}, "prompts of run new: got 'no scenario'"),
        ({"workload": {"scenario": {"name": "made", "streams": []}}}, "expected one that this version can read"),
    ],
)
def test_runs_that_say_nothing_of_the_calibration_are_named(calibration, simulator, model_folder, facts, message):
    with pytest.raises(InputError, match=message):
        validate(live(model_folder, asks(), "new", meta=facts), calibration, simulator)
    assert simulator.jobs == []


def test_a_run_in_which_a_request_failed_is_refused(calibration, simulator, model_folder):
    run = live(model_folder, [*asks(), ask("huge", 2000)], "new")
    with pytest.raises(InputError, match="got 'requests that are error', expected requests that all ended well"):
        validate(run, calibration, simulator)


def test_prompts_are_made_again_for_a_prefix_cache(calibration, model_folder, tmp_path, monkeypatch):
    shared = {"class": "chat", "arrivals": {"kind": "at_once", "count": 3}, "prompt_tokens": 40, "output_tokens": 3}
    scenario = Scenario.model_validate(
        {"name": "made", "streams": [{**shared, "shared_prefix": {"tokens": 96, "groups": 1}}]}
    )
    tokenizer = write_tokenizer(tmp_path)
    built = build_workload(scenario, tokenizer, 1024, 5, 2)
    facts = {"resolved": {"prefix_caching": True}, "workload": dict(built.source)}
    requests = [
        ask(r.request, len(r.prompt), 3, at=0.4 * i, tokens=np.asarray(r.prompt, "<i4").tobytes())
        for i, r in enumerate(built.requests)
    ]
    run = live(model_folder, requests, "new", prefix_cache=True, meta=facts)
    assert run.requests["cached_tokens"].tolist() == [0, 96, 96]
    models = "workbench.models.resolve_model"
    monkeypatch.setattr(models, lambda _: type("Files", (), {"tokenizer_path": tokenizer}))
    found = validate(run, calibration, InProcess(model_folder), draws=1)
    assert abs(found.error_pct["chat_ttft"]) < 2  # without the cache the later two would take half as long again
    with pytest.raises(InputError, match="got 'none', expected token ids"):
        job_of(run, Varied(Calibrated(calibration)))
    with pytest.raises(InputError, match="prompt of chat-0: got '1 tokens', expected 136"):
        job_of(run, Varied(Calibrated(calibration)), prompts={"chat-0": [1]})
    assert prompts_of(live(model_folder, asks(), "new")) is None
    assert replay.prompts_of(run)["chat-1"] == built.requests[1].prompt


def test_figures_by_hand():
    requests = [
        {"request": "a", "class": "x", "prompt_tokens": 1200, "planned_s": 1.0, "sent_s": 1.0, "first_s": 3.0}
        | {"last_s": 3.4, "done_s": 3.5, "output_tokens": 3, "status": "ok"},
        {"request": "b", "class": "x", "prompt_tokens": 80, "planned_s": 2.0, "sent_s": 2.0, "first_s": 2.5}
        | {"last_s": 6.0, "done_s": 6.0, "output_tokens": 2, "status": "ok"},
    ]
    tokens = [
        {"request": who, "index": i, "n": 1, "client_s": at, "engine_s": at - lag}
        for who, i, at, lag in (
            ("a", 0, 3.0, 0.1),
            ("a", 1, 3.1, 0.1),
            ("a", 2, 3.4, 0.1),
            ("b", 0, 2.5, 0.1),
            ("b", 1, 6.0, 0.3),
        )
    ]
    empty = {name: schema.empty_table() for name, schema in TABLES.items()}
    found = figures(
        Trace(empty | {"requests": table_of("requests", requests), "tokens": table_of("tokens", tokens)}, {})
    )
    assert found["gap_p50"] == pytest.approx(300)  # of 100, 300 and 3,500 ms
    assert found["gap_p99"] == pytest.approx(300 + 0.98 * 3200)
    assert (found["gap_max"], found["engine_gap_p99"]) == pytest.approx((3500, 300 + 0.98 * 3000))
    assert (found["long_ttft"], found["chat_ttft"]) == pytest.approx((2.0, 0.5))
    assert (found["makespan"], found["throughput"]) == pytest.approx((5.0, (1280 + 5) / 5))


def test_delays_are_those_of_requests_that_met_an_idle_engine(model_folder):
    # The second comes in the middle of a step: what it waits for is the step, not the front end.
    run = live(model_folder, [ask("a", 300, 2), ask("b", 300, 2, at=0.1), ask("c", 30, 2, at=9.0)], admission_s=0.03)
    assert delays([run]).admission_s == pytest.approx(0.03)
    assert delays([]) == (0.0, 0.0)


def test_errors_are_kept_by_run_and_stand_on_the_label(calibration, simulator, model_folder):
    assert errors_of([{"gap_p50": 1.0}, {"gap_p50": -3.0}, {"gap_p50": 5.0, "gap_p99": -8.0}]) == {
        "gap_p50": {"median_pct": 3.0, "p90_pct": pytest.approx(4.6), "runs": 3},
        "gap_p99": {"median_pct": 8.0, "p90_pct": 8.0, "runs": 1},
    }
    assert Calibrated(calibration).describe()["label"].startswith("no other run checked yet, steps: decode ±0 %")
    before = replace(calibration, checks={"old": {"gap_p50": -4.0, "throughput": 7.0}, "new": {"gap_p50": 90.0}})
    run = live(model_folder, asks(3), "new", prices=slower(1.25))
    after = checked(before, [validate(run, calibration, simulator, draws=1)])
    assert set(after.checks) == {"old", "new"}
    assert after.errors["gap_p50"]["median_pct"] == pytest.approx(12, abs=0.5)  # of 4 and 20
    by_hand = {"old": {"gap_p50": -4.0, "throughput": 7.0}, "new": {"gap_p50": 20.0, "gap_p99": -11.2}}
    model = Varied(Calibrated(replace(calibration, checks=by_hand)))
    assert model.describe()["errors"]["gap_p50"] == {"median_pct": 12.0, "p90_pct": pytest.approx(18.4), "runs": 2}
    setup = Setup(None, None, None, model, None, 1, 1, None)
    assert setup.label == "calibrated, gap P50 ±12 %, gap P99 ±11 %, throughput ±7 %"
    assert Calibration.from_dict(json.loads(json.dumps(after.as_dict()))) == after


def test_a_validation_is_plain_data(calibration, simulator, model_folder):
    told = validate(live(model_folder, asks(4), "new"), calibration, simulator, draws=1).as_dict()
    again = json.loads(json.dumps(told))
    assert [row["metric"] for row in again["metrics"]] == [name for name in METRICS if name != "long_ttft"]
    assert again["requests"][0]["request"] == "chat-0"
    assert meta()["id"] == "a"
