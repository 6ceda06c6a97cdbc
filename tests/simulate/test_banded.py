"""A scenario at both ends of the band: on vLLM's own scheduler, in a child."""

import pytest

from workbench import metrics
from workbench.errors import InputError
from workbench.frozen import parse
from workbench.simulate.banded import play_banded
from workbench.workload.scenario import Scenario, load_scenario


def small(**fields):
    engine = {"engine": "simulated", "model": "qwen2.5-7b", "gpu": "H100", "max_num_batched_tokens": 4096}
    stream = {"class": "chat", "arrivals": {"kind": "constant", "rate": 20, "count": 6}}
    stream |= {"prompt_tokens": 512, "output_tokens": 16}
    settings = [{"name": "small", "budget": 256}, {"name": "large"}]
    given = {"name": "small", "engine": engine, "streams": [stream], "settings": settings, **fields}
    return parse(Scenario, given)


@pytest.fixture
def simulator(one_simulator):
    one_simulator.start()
    return one_simulator


def longest_s(trace):
    return metrics.summary(trace, load_scenario("policies").slo)["ttft_max_s"]


def test_each_setting_is_played_as_modelled_and_at_both_ends(simulator):
    told = []
    runs = play_banded(small(), simulator=simulator, told=lambda *one: told.append(one))
    assert list(runs) == ["small", "large"]
    assert told[0] == (0, 6, "small, as modelled")
    assert told[-1] == (5, 6, "large, slowest")
    for run in runs.values():
        low, middle, high = run.band(longest_s)
        assert longest_s(run.low) == low < longest_s(run.trace) == middle < longest_s(run.high) == high
        assert run.trace.meta["engine"]["simulated"]["step_time_label"] == "roofline, uncalibrated"
        assert set(run.trace.requests["status"]) == {"ok"}
    assert runs["small"].trace.steps["prefill_tokens"].max() <= 256 < runs["large"].trace.steps["prefill_tokens"].max()
    again = play_banded(small(), simulator=simulator)
    assert all(again[name].low.tables[t].equals(runs[name].low.tables[t]) for name in runs for t in ("tokens", "steps"))


def test_a_setting_takes_hold_at_its_time(simulator):
    scenario = small(settings_at_s=0.1)
    steps = play_banded(scenario, [scenario.settings[0]], simulator=simulator)["small"].trace.steps
    later = steps["scheduled_s"] >= 0.1
    assert set(steps.loc[later, "revision"]) == {1}
    assert set(steps.loc[~later, "revision"]) == {0}
    assert steps.loc[~later, "prefill_tokens"].max() > 256


def test_a_live_scenario_or_one_without_settings_is_refused(simulator):
    with pytest.raises(InputError, match="one with engine: simulated"):
        play_banded(load_scenario("policies"), simulator=simulator)
    with pytest.raises(InputError, match="settings: got 'none'"):
        play_banded(small(settings=[]), simulator=simulator)
