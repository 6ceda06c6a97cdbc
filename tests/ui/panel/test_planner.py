"""The planner's form and widget, on plays that are made up."""

from __future__ import annotations

import threading

import pytest

from workbench.errors import EngineError, InputError
from workbench.planning.plays import StoppedError
from workbench.planning.rule import Verdict
from workbench.ui.panel.plan_form import PlanForm
from workbench.ui.planner import Planner


class Player:
    """Every setting breaks at 5/s. SYNTHETIC."""

    waits: threading.Event | None = None
    fails = False

    def __init__(self, told):
        self.told, self.stopped = told, threading.Event()

    def start(self, progress):
        if Player.fails:
            raise EngineError("simulator start: it did not")

    def play(self, place, rate, residence_s, step_time=None):
        if Player.waits is not None and place.knobs.budget == 2048:
            Player.waits.set()
            assert self.stopped.wait(10)
        if self.stopped.is_set():
            raise StoppedError("stopped")
        self.told()
        facts = dict.fromkeys(("busy", "prefill_time", "kv_max", "kv_mean", "largest_prompt", "mfu"), 0.5)
        facts |= dict.fromkeys(("running_max", "waiting_mean", "at_cap", "preemptions", "largest_step"), 0.0)
        share = 1.0 if rate <= 5 else 0.0
        return Verdict(rate, rate <= 5, share, 1 - share, 0.0, 0.0, 100, 1.0, True, 0.0, ("chat", share), facts)

    def stop(self):
        self.stopped.set()

    def close(self):
        pass


@pytest.fixture(autouse=True)
def _made_up(monkeypatch):
    Player.waits, Player.fails = None, False
    monkeypatch.setattr("workbench.planning.planner.Player", Player)


def said(form, name):
    (part,) = [one for top in form.parts for one in top.all() if one.id == name]
    return part.markup if name in ("plan_result", "plan_command") else part.text


def small(form):
    form.fields["budgets"].put("512, 2048")
    form.fields["chunks"].put("0")
    return form


def test_the_question_is_what_the_fields_say():
    form = small(PlanForm())
    form.fields["gpu"].choose("a100-80gb-sxm")
    form.fields["count"].choose(4)
    form.fields["traffic"].choose("bursty_chat")
    form.fields["gap_ms"].put(120.0)
    form.fields["price"].put("1.9")
    form.policies["qos"].put(True)
    asked = form.asked
    assert (asked.scenario.name, asked.budgets, asked.chunks, asked.policies) == (
        "bursty_chat", (512, 2048), (0,), ("qos",))  # fmt: skip
    assert (asked.start_up["gpu"], asked.start_up["count"]) == ("a100-80gb-sxm", 4)
    assert (asked.slo.gap_ms, asked.slo.ttft_ms) == (120.0, 2000.0)
    assert (asked.price, asked.need) == (1.9, None)


@pytest.mark.parametrize(
    ("field", "raw", "words"),
    [("budgets", "many", "^budget: got 'many'"), ("chunks", "", "^chunk: got 'none'"), ("need", "x", "^need: got 'x'"),
     ("price", "-2", "^price: got '-2"), ("model", "gpt-9", "^model: got 'gpt-9'")],
)  # fmt: skip
def test_what_is_wrong_is_named(field, raw, words):
    form = small(PlanForm())
    form.fields[field].put(raw)
    with pytest.raises(InputError, match=words):
        form.run()


def test_a_plan_shows_charts_table_and_the_command_to_copy():
    form = small(PlanForm())
    form.run()
    result = said(form, "plan_result")
    assert result.count("<svg") == 1
    for words in ("simulated, roofline, uncalibrated", "band from", "TTFT: steps with prefill", "Capacity: the most"):
        assert words in result
    assert "<script" not in result
    (copier,) = [one for top in form.parts for one in top.all() if one.id == "plan_copy"]
    assert copier.tree()["copies"] == form.plan.best.command
    assert not copier.hidden
    assert "--max-num-batched-tokens 512" in said(form, "plan_command")
    assert f"{form.plan.plays} plays in " in said(form, "plan_now")


def test_policies_add_their_chart():
    form = small(PlanForm())
    form.policies["qos"].put(True)
    form.run()
    assert said(form, "plan_result").count("<svg") == 2


def test_the_button_runs_it_in_a_thread_and_stops_it_and_what_there_is_stays():
    planner = Planner()
    small(planner.form)
    Player.waits = threading.Event()
    planner.form.button.press()
    assert Player.waits.wait(30)
    assert planner.form.button.text == "Stop"
    assert planner.form.fields["gpu"].disabled
    planner.form.button.press()
    planner.wait(30)
    assert planner.form.button.text == "Plan"
    assert not planner.form.fields["gpu"].disabled
    assert said(planner.form, "plan_now").startswith("Stopped after ")
    planner.close()


def test_errors_are_shown_in_the_panel():
    planner = Planner()
    small(planner.form).fields["count"].choose(1)
    planner.form.button.press()
    planner.wait(30)
    assert said(planner.form, "plan_bad").startswith("memory of Llama-3.1-70B on 1 x H100 SXM: got ")
    planner.form.fields["count"].choose(8)
    Player.fails = True
    planner.form.button.press()
    planner.wait(30)
    assert said(planner.form, "plan_bad") == "simulator start: it did not"
    Player.fails = False
    planner.form.button.press()
    planner.wait(30)
    assert said(planner.form, "plan_bad") == ""
    planner.close()


def test_a_cell_that_runs_again_closes_the_planner_before_and_ends_its_plan():
    first = Planner()
    small(first.form)
    Player.waits = threading.Event()
    first.form.button.press()
    assert Player.waits.wait(30)
    second = Planner()
    first.wait(30)
    assert first.form.plan.stopped
    assert first.comm is None
    assert second.comm is not None
    second.close()
