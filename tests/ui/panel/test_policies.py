"""Comparing policies: what would be played, how long that takes, and what comes of it."""

from __future__ import annotations

import threading

import pytest

from workbench.config import POLICIES, SLO, EngineConfig, parse
from workbench.errors import EnvelopeError
from workbench.policy_runs import PolicyRuns
from workbench.ui.panel.policies import PolicyForm, expected_s, pictured
from workbench.workload.scenario import Scenario, scenario_names


class Bench:
    """Plays nothing, and keeps what it was asked for."""

    def __init__(self, config, played=()):
        self.engine, self.asked, self._played = self, [], played
        self.envelope = config.envelope

    def compare_policies(self, scenario, *, settings, follow):
        self.asked.append((scenario.name, [setting.name for setting in settings]))
        runs = PolicyRuns(scenario.name, scenario.slo)
        for setting, run in zip(settings, self._played, strict=False):
            follow(setting, run)
        return runs


class Played:
    done, elapsed_s = True, 8.0


def says(form, name):
    (found,) = [part for part in form.drawer.all() if part.id == name]
    return found.text


def test_all_policies_are_offered_and_two_are_the_least():
    form = PolicyForm()
    assert form.chosen == list(POLICIES)
    for name in POLICIES[1:]:
        form.policies[name].put(False)
    assert form.chosen == [POLICIES[0]]
    assert form.problem == says(form, "policy_bad") == "Choose at least two policies to compare."
    form.fit(can=True, going=False)
    assert form.button.disabled
    form.policies["qos"].put(True)
    form.fit(can=True, going=False)
    assert not form.button.disabled


def test_what_it_takes_is_said_before_it_begins_as_an_estimate():
    form = PolicyForm()
    if "policies" not in scenario_names():
        pytest.skip("no scenario of that name in this checkout")
    form.scenario.choose("policies")
    said = says(form, "policy_time")
    assert said.startswith(f"{len(POLICIES)} runs of about ")
    assert "estimate for a small model on one CPU core" in said


def test_an_estimate_counts_prompts_and_outputs_of_all_streams():
    stream = {"class": "chat", "arrivals": {"kind": "at_once", "count": 4}, "prompt_tokens": 100, "output_tokens": 90}
    late = {"class": "late", "start_s": 30, "arrivals": {"kind": "at_once", "count": 1}, "prompt_tokens": 800,
            "output_tokens": 9}  # fmt: skip
    both = parse(Scenario, {"name": "both", "streams": [stream | {"arrivals": {"kind": "at_once", "count": 40}}, late]})
    assert expected_s(both) == pytest.approx((4000 + 800) / 400 + (3600 + 9) / 90)  # at 400 and 90 tokens/s
    assert expected_s(parse(Scenario, {"name": "late", "streams": [late]})) == 30, "it has to arrive first"


def test_a_policy_that_does_not_fit_the_engine_is_left_out_and_one_that_does_is_played():
    form, bench = PolicyForm(), Bench(EngineConfig(max_num_batched_tokens=8192, max_model_len=16384))
    form.scenario.choose("chat_and_long")
    form.run(bench, lambda: False)  # monolithic: a budget of 8,192 is too small for prompts of 16,384
    ((scenario, settings),) = bench.asked
    assert (scenario, len(settings)) == ("chat_and_long", len(POLICIES) - 1)
    for name in POLICIES:
        form.policies[name].put(name == "monolithic")
    with pytest.raises(EnvelopeError, match="monolithic"):
        form.run(bench, lambda: False)


def test_the_next_time_it_says_how_long_it_took_here():
    form = PolicyForm()
    form.scenario.choose("chat_and_long")
    form.run(Bench(EngineConfig(), [Played()] * 2), lambda: False)
    assert says(form, "policy_time").startswith(f"{len(POLICIES)} runs of about 8 s, 48 s in all (as the last one")


def test_while_it_goes_on_the_button_stops_it():
    form, begun, over = PolicyForm(), threading.Event(), threading.Event()

    class Slow(Bench):
        def compare_policies(self, scenario, **_):
            begun.set()
            over.wait(10)
            return PolicyRuns(scenario.name, scenario.slo)

    form.scenario.choose("chat_and_long")
    thread = threading.Thread(target=form.run, args=[Slow(EngineConfig()), lambda: True])
    thread.start()
    assert begun.wait(10)
    form.fit(can=False, going=True)
    assert (form.button.text, form.button.disabled, form.scenario.disabled) == ("Stop comparing", False, True)
    over.set()
    thread.join(10)
    form.fit(can=True, going=False)
    assert (form.button.text, form.scenario.disabled) == ("Compare policies", False)
    assert says(form, "policy_now") == "Stopped: what had ended is shown."


def test_the_picture_has_each_policy_its_figures_and_what_was_not_played(make_crowded):
    runs = {name: make_crowded(name) for name in ("chunked", "qos")}
    markup = pictured(runs, SLO(gap_ms=200), {"monolithic": "got <b>"})
    assert markup.count("<svg") == 1
    for words in ("chunked", "qos", "live CPU", "ttft_p99_s", "One seeded run each"):
        assert words in markup
    assert "monolithic was not played: got &lt;b&gt;" in markup
    assert "<script" not in markup
