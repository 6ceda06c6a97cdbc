"""The load form: mixes with their question, a rate only where there is one, a prompt that fits, the promise."""

from __future__ import annotations

import pytest

from workbench.config import SLO
from workbench.errors import ScenarioError
from workbench.ui.panel import load
from workbench.ui.panel.load import OUTPUT_TOKENS, LoadForm
from workbench.workload.scenario import load_scenario, scenario_names


def pick(control, value):
    control.choose(value)


def alert(form):
    (said,) = [part for part in form.parts if part.id == "load_problem"]
    return said.text


def test_all_named_mixes_are_offered_the_endless_one_first():
    form = LoadForm()
    assert form.scenario.options == tuple(scenario_names())
    assert form.values == {"scenario": "interactive", "rate": None, "slo": SLO(), "long_tokens": 2048}
    assert form.problem is None


def test_the_question_is_the_tooltip_and_is_on_screen():
    form = LoadForm()
    for name in form.scenario.options:
        pick(form.scenario, name)
        question = load_scenario(name).question
        assert form.scenario.hint == question
        assert [part.text for part in form.parts if part.id == "question"] == [question]


def test_the_rate_is_the_scenarios_own_and_can_be_another():
    form = LoadForm()
    assert (form.rate.value, form.rate.shown, form.rate.disabled) == (None, "0.05 (own)", False)
    pick(form.rate, 0.1)
    assert form.values["rate"] == 0.1
    assert load_scenario("interactive").at_rate(0.1).rate == pytest.approx(0.1)
    pick(form.scenario, "bursty_chat")
    assert (form.values["rate"], form.rate.shown) == (None, "1.5 (own)")
    assert form.rate.options == (0.375, 0.75, 1.12, None, 2.25, 3.0, 4.5, 6.0)


def test_a_mix_without_a_rate_has_none_to_set():
    form = LoadForm()
    pick(form.scenario, "chat_and_long")
    assert form.rate.disabled
    assert form.values["rate"] is None
    form.disabled = True
    form.disabled = False
    assert form.rate.disabled
    pick(form.scenario, "interactive")
    assert not form.rate.disabled


def test_the_long_prompt_fits_the_context():
    form = LoadForm()
    assert form.long_tokens.options == (64, 128, 256, 512, 1024, 2048, 4096 - OUTPUT_TOKENS)
    pick(form.long_tokens, 4080)
    form.bind(32768)
    assert form.long_tokens.options[-1] == 32752
    assert form.values["long_tokens"] == 2048  # 4,080 is no choice any more
    pick(form.long_tokens, 16384)
    form.bind(131072)
    assert form.values["long_tokens"] == 16384
    form.bind(1024)
    assert form.values["long_tokens"] == 1008
    form.bind(16)
    assert form.long_tokens.options == (1,)


def test_a_mix_that_does_not_fit_the_context_is_said():
    form = LoadForm()
    form.bind(2048)
    assert form.problem.startswith("streams.1 (class document): got 'up to 3000 prompt + 16 output")
    assert alert(form) == form.problem
    form.bind(4096)
    assert (form.problem, alert(form)) == (None, "")


def test_the_promise_is_the_scenarios_and_can_be_another(monkeypatch):
    strict = load_scenario("interactive").replace(slo={"gap_ms": 50, "ttft_ms": 900, "gap_percentile": 99})
    monkeypatch.setattr(load, "load_scenario", lambda name: strict)
    form = LoadForm()
    assert form.values["slo"] == strict.slo
    form.slo["gap_ms"].put(80.0)
    assert form.values["slo"] == SLO(gap_ms=80, ttft_ms=900, gap_percentile=99)
    assert [one.label for one in form.slo.values()] == ["gap (ms)", "ttft (ms)"]


def test_a_persons_changes_are_told_and_binding_is_not():
    form, told = LoadForm(), []
    form.observe(lambda: told.append(1))
    form.bind(8192)
    assert not told
    pick(form.rate, 0.1)
    pick(form.scenario, "bursty_chat")
    pick(form.long_tokens, 512)
    form.slo["ttft_ms"].put(1000.0)
    assert len(told) == 4


def test_nothing_can_be_changed_when_disabled():
    form = LoadForm()
    for off in (True, False):
        form.disabled = off
        assert form.disabled is off
        assert {one.disabled for one in (form.scenario, form.rate, form.long_tokens, *form.slo.values())} == {off}


def test_a_damaged_scenario_is_a_problem_and_no_crash(monkeypatch):
    def broken(name):
        raise ScenarioError("<b>interactive.yaml", 1, "fields", "mend it")

    monkeypatch.setattr(load, "load_scenario", broken)
    form = LoadForm()
    assert form.problem.startswith("<b>interactive.yaml: got '1'")
    assert form.rate.disabled


def test_an_installation_without_scenarios_says_so(monkeypatch):
    monkeypatch.setattr(load, "scenario_names", list)
    form = LoadForm()
    assert (form.scenario.options, form.values["scenario"]) == ((None,), None)
    assert "no named scenarios" in form.problem
