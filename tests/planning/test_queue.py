"""The planner on the real simulator, with steps of constant time: capacities that queueing says by hand."""

from __future__ import annotations

import threading

import psutil
import pytest

from workbench.config import parse
from workbench.planning import Asked, Planner, Rule
from workbench.simulate.host import Simulator
from workbench.workload.scenario import Scenario


@pytest.fixture(scope="module")
def found(constant, shared_simulator):
    """Requests of one prompt step and four more, 0.5 s each, at most four at once: 4 / 0.5 s = 8 a second."""
    stream = {"class": "chat", "prompt_tokens": 20, "output_tokens": 5, "arrivals": {
        "kind": "constant", "rate": 1.0, "count": 1}}  # fmt: skip
    made = parse(Scenario, {"name": "made", "streams": [stream], "slo": {"ttft_ms": 300, "gap_ms": 200}})
    fields = {"async_scheduling": False, "max_num_seqs": 4, "max_model_len": 256}
    asked = Asked.of(
        made, model="qwen2.5-7b", count=1, start_up=fields, budgets=(512,), chunks=(0,), step_time=constant(0.1),
        rule=Rule(step=0.1, requests=120), policies=("chunked", "qos", "monolithic", "decode_first"),
    )  # fmt: skip
    return Planner(asked, workers=1).run()


def test_the_capacity_is_places_over_the_time_that_each_is_taken(found):
    (row,) = found.cells
    # A request waits for the step that runs when it comes, and for its own: 0.2 s at most, as long as no queue grows.
    assert row.capacity.low <= 8.0 < row.capacity.high
    assert row.capacity.high == pytest.approx(1.1 * row.capacity.low)


def test_what_binds_is_the_running_cap(found):
    (row,) = found.cells
    assert row.limit == "TTFT: running cap of 4"
    assert row.capacity.at.facts["running_max"] == 4
    assert row.capacity.at.facts["preemptions"] == 0
    assert row.capacity.at.facts["largest_prompt"] == 20


def test_policies_rank_as_queueing_says(found):
    rates = {row.policy: (row.capacity.low, row.capacity.high) for row in found.policies}
    assert list(rates) == ["chunked", "qos", "monolithic", "decode_first"], "in the order asked for"
    # One class, and a prompt is one step whichever way: these are alike.
    assert rates["chunked"] == rates["qos"] == rates["monolithic"]
    # A prompt waits until no decode runs. Requests that come 0.5 s apart never meet; closer together they come at all
    # moments of the 0.5 s that the others take, and those in the first 0.3 s of it wait longer than 0.2 s.
    low, high = rates["decode_first"]
    assert low <= 2.0 < high == pytest.approx(1.1 * low)
    assert found.best.policy == "chunked", "of equals the first"
    (_, _, _, last) = found.policies
    assert last.limit.startswith("TTFT: ")
    assert "# without the policy decode_first" in last.command


def test_figures_follow_from_the_capacity(found):
    figures, *_ = found.rows()
    assert figures["output_tokens_per_s"] == pytest.approx(5 * figures["capacity_per_s"])
    assert figures["tokens_per_s"] == pytest.approx(25 * figures["capacity_per_s"])
    assert figures["goodput_share"] == 1.0
    assert 0 < figures["mfu"] < 0.01
    assert figures["label"] == "simulated, constant, made up"


def test_a_stop_in_mid_play_ends_it_and_its_child(monkeypatch):
    monkeypatch.setattr("workbench.planning.plays.Simulator", Simulator)  # a child of its own
    begun = threading.Event()
    asked = Asked.of("azure-like", budgets=(512,), chunks=(0,), rule=Rule(requests=5000, most=20_000))
    planner = Planner(asked, lambda now: begun.set() if now.what.startswith("budget") else None, workers=1)
    thread = threading.Thread(target=planner.run)
    thread.start()
    assert begun.wait(180)
    pid = planner._crew.players[0]._simulator.pid
    planner.stop()
    thread.join(30)
    assert not thread.is_alive()
    assert planner.plan.stopped
    assert not psutil.pid_exists(pid)
