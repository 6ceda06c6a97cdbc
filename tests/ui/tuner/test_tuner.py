"""The tuner's form and widget, on trials that are made up."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from workbench.errors import EngineError, InputError
from workbench.tune.trial import Result
from workbench.ui.tuner import Tuner
from workbench.ui.tuner.form import TuneForm

sys.path.insert(0, str(Path(__file__).parents[2] / "tune"))
from made_results import result


class Player:
    """Goodput grows with the budget, and so do the gaps: 512 tokens are the most within 200 ms. MADE UP."""

    waits: threading.Event | None = None
    fails = False

    def __init__(self, scenario, goal, space, *, runs=None, bench=None, progress=None, began=None):
        self.bench = SimpleNamespace(engine=SimpleNamespace(model=None))
        self.label, self.closed = "live CPU", False

    def play(self, asked, watch=None):
        if Player.fails:
            raise EngineError("engine: it did not come up")
        budget = asked.point.hot["budget"]
        if Player.waits is not None and asked.number == 2:
            Player.waits.set()
            while watch.look([]) is None:
                pass
            return Result(asked.number, asked.point, asked.seed, "interrupted")
        return result(asked.number, dict(asked.point.hot), budget / 256, gap=budget / 2.7, seed=asked.seed)

    def close(self):
        self.closed = True


@pytest.fixture(autouse=True)
def _made_up(monkeypatch, tmp_path):
    Player.waits, Player.fails = None, False
    monkeypatch.setattr("workbench.tune.tune.EnginePlayer", Player)
    monkeypatch.setattr("workbench.tune.foretelling.simulated_config", lambda config: None)
    monkeypatch.setenv("WORKBENCH_RUNS", str(tmp_path / "runs"))


def said(form, name):
    (part,) = [one for top in form.parts for one in top.all() if one.id == name]
    return part.markup if name in ("tune_map", "tune_answer") else part.text


def small(form):
    form.fields["scenario"].choose("chats_and_documents")
    form.fields["budget"].put("128, 256, 512, 1024")
    form.fields["chunk"].put("0")
    form.fields["policy"].put("chunked")
    form.fields["max_running"].put("32")
    form.fields["rounds"].put(2)
    return form


def test_the_question_is_what_the_fields_say():
    form = small(TuneForm(start_up={"model": "tiny-long"}))
    form.fields["limits"].put("gap_max_ms = 300, ttft_p99_s.chat=1.5")
    form.fields["objective"].choose("long_ttft")
    form.fields["trials"].put(7)
    asked = form.question
    assert asked.goal.limits == {"gap_max_ms": 300.0, "ttft_p99_s.chat": 1.5}
    assert asked.goal.objectives == ("long_ttft",)
    assert dict(asked.space.hot)["budget"] == (128, 256, 512, 1024)
    assert (asked.allowance.trials, asked.rounds, asked.space.config.model) == (7, 2, "tiny-long")
    assert asked.settings == 4


def test_it_begins_with_the_gap_that_the_scenario_promises():
    form = TuneForm()
    form.fields["scenario"].choose("policies")
    assert form.fields["limits"].value == {"gap_p99_ms": 300.0}


@pytest.mark.parametrize(
    ("field", "raw", "words"),
    [
        ("limits", "gap_p99_ms", "limits: got 'gap_p99_ms', expected FIGURE=VALUE"),
        ("limits", "gap_p99_ms=soon", "limit gap_p99_ms: got 'soon'"),
        ("limits", "gap_p98_ms=3", "limit: got 'gap_p98_ms'"),
        ("limits", "ttft_p99_s.vip=1", "limit ttft_p99_s.vip: got 'vip', expected a class of chat, document"),
        ("policy", "fastest", "policy: got 'fastest'"),
    ],
)
def test_what_is_wrong_is_named(field, raw, words):
    form = small(TuneForm())
    form.fields[field].put(raw)
    with pytest.raises(InputError, match=words.replace("(", r"\(")):
        form.run()


def test_a_study_shows_its_charts_its_answer_and_the_command_to_copy():
    form = small(TuneForm())
    form.run()
    assert said(form, "tune_map").count("<svg") == 2
    answer = said(form, "tune_answer")
    assert "<b>chunked budget 512 chunk off max_running 32: goodput 2 (95 % interval 2 to 2 of 2 plays)" in answer
    for words in (
        "--max-num-batched-tokens 512",
        "max-num-batched-tokens: 512",
        "docker run",
        "it binds: chunked budget",
    ):
        assert words in answer, words
    assert "<script" not in answer
    (copier,) = [one for top in form.parts for one in top.all() if one.id == "tune_copy"]
    assert copier.tree()["copies"] == form.tune.emitted.command
    assert not copier.hidden
    assert said(form, "tune_now").startswith("Ended: 4 trials in ")
    assert said(form, "tune_now").endswith("(every setting was played)")


def test_where_nothing_is_within_the_limits_it_says_which_binds_and_by_how_much():
    form = small(TuneForm())
    form.fields["limits"].put("gap_p99_ms=40")
    Player.play, before = (
        lambda self, asked, watch=None: result(asked.number, dict(asked.point.hot), 1.0, gap=50.0, limit=40.0),
        Player.play,
    )
    try:
        form.run()
    finally:
        Player.play = before
    assert "gap_p99_ms binds, with 50 where 40 is allowed (25% above)" in said(form, "tune_answer")
    assert form.tune.emitted is None


def test_the_button_runs_it_in_a_thread_and_stops_it_and_what_there_is_is_kept():
    tuner = Tuner()
    small(tuner.form)
    Player.waits = threading.Event()
    tuner.form.button.press()
    assert Player.waits.wait(60)
    assert tuner.form.button.text == "Stop and keep"
    assert tuner.form.fields["limits"].disabled
    tuner.form.button.press()
    tuner.wait(60)
    assert tuner.form.button.text == "Start tuning"
    assert said(tuner.form, "tune_now").startswith("Stopped, and kept: 3 trials in ")
    assert [one.state for one in tuner.form.tune.results] == ["complete", "complete", "interrupted"]
    assert "not confirmed yet" in said(tuner.form, "tune_answer")
    tuner.close()


def test_errors_are_shown():
    tuner = Tuner()
    small(tuner.form).fields["limits"].put("gap_p98_ms=3")
    tuner.form.button.press()
    tuner.wait(60)
    assert said(tuner.form, "tune_bad").startswith("limit: got 'gap_p98_ms'")
    tuner.form.fields["limits"].put("gap_p99_ms=200")
    Player.fails = True
    tuner.form.button.press()
    tuner.wait(60)
    assert said(tuner.form, "tune_bad") == "engine: it did not come up"
    tuner.close()


def test_a_report_can_be_saved_once_there_is_an_answer(monkeypatch):
    written = []
    monkeypatch.setattr(
        "workbench.report.study.write_study_report",
        lambda path, answer, space, again: written.append((path.name, answer.best.name, again)) or path,
    )
    tuner = Tuner()
    assert small(tuner.form).report.hidden
    tuner.form.run()
    assert not tuner.form.report.hidden
    tuner.form.report.press()
    tuner.wait(60)
    name = tuner.form.tune.name
    best = "chunked budget 512 chunk off max_running 32"
    assert written == [(f"{name}.html", best, f"workbench tune --resume {name}")]
    assert said(tuner.form, "tune_saved").startswith("Saved: ")
    tuner.close()


def test_it_cannot_begin_while_the_panel_plays():
    bench = SimpleNamespace(playing=True)
    tuner = Tuner(bench)
    assert tuner.form.button.disabled
    assert tuner.form.button.hint == "A run goes on: stop the load first"
    bench.playing = False
    tuner._fit()
    assert not tuner.form.button.disabled
    tuner.close()


def test_a_workbench_has_its_own_start_up_fields():
    with pytest.raises(InputError, match=r"use wb\.configure"):
        Tuner(SimpleNamespace(playing=False), model="smollm2")
