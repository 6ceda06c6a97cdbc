"""The panel on an engine that is none (no vLLM, no browser in here): what each button does, and what can be pressed."""

import threading
import time

import ipywidgets
import pytest

from workbench import Workbench
from workbench.errors import EngineDiedError, EngineStartError
from workbench.policy_runs import PolicyRuns
from workbench.presets import presets
from workbench.ui.panel.app import LEAVE_AFTER, Panel

ALWAYS = {"pause", "code", "serve", "sglang"}


def test_only_what_makes_sense_can_be_pressed(panel, bench, press, pressable):
    assert pressable(panel) == ALWAYS | {"start"}
    assert panel.knob_form.disabled
    assert not panel.start_form.disabled
    press(panel, "start")
    assert pressable(panel) == ALWAYS | {"stop", "run", "drop"}
    assert not panel.knob_form.disabled
    assert panel.start_form.disabled
    press(panel, "run")
    assert panel.buttons.run.text == "Stop load"
    assert pressable(panel) == ALWAYS | {"stop", "run", "drop", "save", "report", "compare"}
    press(panel, "run")
    assert not bench.playing
    assert panel.buttons.run.text == "Run load"
    press(panel, "stop")
    assert pressable(panel) == ALWAYS | {"start", "save", "report", "compare"}
    assert panel.knob_form.disabled


def test_a_clash_of_two_fields_names_both_and_disables_start(panel):
    form = panel.start_form
    form.controls["max_num_batched_tokens"].put(0)
    form.controls["max_num_seqs"].show(512)
    form._changed()
    assert "max_num_batched_tokens" in form.problem
    assert "max_num_seqs" in form.problem
    assert panel.buttons.start.disabled


def test_the_engine_starts_with_what_the_form_shows(panel, bench, monkeypatch, press):
    started = []
    monkeypatch.setattr(bench, "configure", lambda **fields: started.append(fields))
    panel.start_form.controls["max_model_len"].show(2048)
    panel.start_form._changed()
    press(panel, "start")
    assert started[0]["max_model_len"] == 2048
    assert started[0]["model"] == "smollm2"


def test_a_moved_slider_reaches_the_engine_as_one_revision(panel, bench, press, until):
    press(panel, "start")
    budget = panel.knob_form.controls["budget"]
    budget.choose(64)
    assert [knobs.budget for knobs in bench.engine.sent] == [64]
    assert until(lambda: "revision 1" in panel.board._status.get("state", ""))


def test_a_change_from_a_cell_moves_the_slider_and_sends_nothing_back(panel, bench, press):
    press(panel, "start")
    bench.knobs(budget=256, chunk=128)
    panel._refresh()
    assert panel.knob_form.controls["budget"].value == 256
    assert panel.knob_form.controls["chunk"].value == 128
    assert len(bench.engine.sent) == 1


def test_a_refused_change_is_shown_and_the_slider_goes_back(panel, bench, monkeypatch, press):
    press(panel, "start")
    before = panel.knob_form.controls["budget"].value

    def refuse(_knobs):
        raise EngineStartError("engine: got a change while it died")

    monkeypatch.setattr(bench.engine, "set_knobs", refuse)
    budget = panel.knob_form.controls["budget"]
    budget.choose(64)
    assert "while it died" in panel._log.errors[-1]
    assert panel.knob_form.controls["budget"].value == before
    assert not panel._log.alert.hidden


def test_a_failed_start_is_explained_and_can_be_tried_again(panel, bench, monkeypatch, press):
    def fail(_progress=None):
        raise EngineStartError("engine start: no memory left; choose smaller settings")

    monkeypatch.setattr(bench, "start", fail)
    press(panel, "start")
    assert "no memory left" in panel._log.errors[-1]
    assert not panel.buttons.start.disabled
    assert not panel.start_form.disabled


def test_stop_works_while_the_engine_starts_and_is_no_error(panel, bench, monkeypatch, press, until):
    entered, stopped = threading.Event(), threading.Event()

    def slow(progress):
        bench.engine.state = "starting"
        progress(3.0, "loading weights")
        entered.set()
        stopped.wait(10)
        bench.engine.state = "stopped"
        raise EngineStartError("the start was stopped")

    monkeypatch.setattr(bench, "start", slow)
    monkeypatch.setattr(bench, "stop", stopped.set)
    panel.buttons.start.press()
    assert entered.wait(10)
    assert until(lambda: panel.board._status.get("state") == "starting 00:03: loading weights")
    press(panel, "stop")
    assert panel._log.errors == ()
    assert not panel.buttons.start.disabled


def test_a_dropped_prompt_has_the_length_that_is_shown(panel, bench, press):
    press(panel, "start")
    press(panel, "run")
    panel.load_form.long_tokens.show(1024)
    press(panel, "drop")
    assert [request.prompt_tokens for request in bench.engine.playing.added] == [1024]


def test_saving_leaves_a_run_and_says_where(panel, bench, tmp_path, press):
    press(panel, "start")
    press(panel, "run")
    press(panel, "save")
    assert panel._log.errors == ()
    (saved,) = tmp_path.glob("*saved*")
    assert str(saved) in panel._hand.pane.markup
    assert (saved / "report.html").exists()
    press(panel, "report")
    (own,) = {path.parent for path in tmp_path.glob("*/report.html")} - {saved}
    assert str(own / "report.html") in panel._hand.pane.markup


def test_comparing_the_first_run_says_what_is_missing(panel, press):
    press(panel, "start")
    press(panel, "run")
    press(panel, "compare")
    assert "expected at least two" in panel._log.errors[-1]


def test_the_last_two_runs_are_compared(panel, press):
    press(panel, "start")
    for _ in range(2):
        press(panel, "run")
        press(panel, "run")
        time.sleep(0.01)
    press(panel, "compare")
    assert panel._log.errors == ()
    assert "gap_p99_ms" in panel._hand.pane.markup
    assert "<table" in panel._hand.pane.markup


def test_code_and_command_are_of_what_is_shown(panel, bench, monkeypatch, press):
    copied = []
    monkeypatch.setattr(panel.board, "copy", copied.append)
    panel.start_form.controls["max_model_len"].show(2048)
    panel.start_form._changed()
    press(panel, "code")
    press(panel, "serve")
    assert "max_model_len=2048" in copied[0]
    assert "--max-model-len 2048" in copied[1]


def test_there_is_one_panel_and_the_engine_stays_when_its_cell_runs_again(bench, press, settle):
    first = Panel(bench).follow()
    press(first, "start")
    second = Panel(bench).follow()
    assert first.comm is None, "closed"
    assert bench.engine.state == "ready"
    settle(second)
    assert not second.knob_form.disabled, "it shows the engine that runs"
    second.close()


def test_a_panel_of_another_workbench_ends_the_engine_of_the_one_before(bench, tmp_path, press):
    first = Panel(bench).follow()
    press(first, "start")
    other = Panel(Workbench(runs=tmp_path)).follow()
    assert bench.engine.state == "stopped"
    other.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_an_error_in_any_thread_is_shown(panel):
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    assert "ZeroDivisionError" in panel._log.errors[-1]


def test_an_engine_that_dies_is_seen_and_its_cause_said(panel, bench, press, until):
    press(panel, "start")
    bench.engine.state = "failed"
    assert until(lambda: panel.knob_form.disabled)
    assert until(lambda: panel._log.errors and "no memory left" in panel._log.errors[-1])
    assert "failed" in panel._state()
    assert not panel.buttons.start.disabled


def test_what_is_odd_with_a_ready_engine_stands_in_place_of_its_revision(panel, bench, press):
    press(panel, "start")
    bench.engine.trouble = "attached server http://h/v1: no answer and no token for 9 s"
    assert panel._state() == bench.engine.trouble
    bench.engine.trouble = ""
    assert panel._state().endswith("revision 0")


def test_the_error_that_ended_a_run_is_said_once(panel, bench, press, until):
    press(panel, "start")
    press(panel, "run")
    bench.engine.playing.error = EngineDiedError("the engine died in mid-run: no memory left")
    bench.engine.playing.over.set()
    assert until(lambda: panel._log.errors)
    time.sleep(0.5)
    assert [error.split(" ", 1)[1] for error in panel._log.errors] == ["the engine died in mid-run: no memory left"]


def test_a_button_does_what_it_says_also_when_that_has_just_ceased_to_be_true(panel, bench, press, settle):
    press(panel, "start")
    press(panel, "run")
    run = bench.current_run
    run.cancel()
    run.wait(10)
    assert panel.buttons.run.text == "Stop load", "not refreshed yet"
    panel.buttons.run.press()
    settle(panel)
    assert bench.current_run is run, "no new load was begun"


def test_start_up_fields_that_a_cell_sets_are_shown(panel, bench):
    bench.configure(max_num_seqs=64, max_model_len=2048)
    panel._refresh()
    assert panel.start_form.controls["max_num_seqs"].value == 64
    assert panel.load_form.long_tokens.options[-1] == 2048 - 16


def test_a_prompt_dropped_on_an_idle_engine_is_held_against_the_promise_that_is_shown(panel, bench, press):
    press(panel, "start")
    panel.load_form.slo["gap_ms"].show(77)
    press(panel, "drop")
    assert bench.current_run.slo.gap_ms == 77


def test_a_panel_that_is_closed_leaves_no_widget(bench):
    before = len(ipywidgets.widgets.widget._instances)
    for _ in range(2):
        Panel(bench).follow()
    panel = Panel(bench).follow()
    panel.close()
    assert len(ipywidgets.widgets.widget._instances) - before < 10


def test_a_dashboard_whose_page_is_gone_ends_its_engine(bench, monkeypatch, press, until):
    monkeypatch.setenv(LEAVE_AFTER, "1.5")
    panel = Panel(bench).follow()
    press(panel, "start")
    for _ in range(5):
        time.sleep(0.5)
        panel.board._handle_custom_msg({"kind": "here"}, [])
    assert bench.engine.state == "ready", "somebody looks"
    assert until(lambda: bench.engine.state == "stopped")
    assert until(lambda: panel.comm is None), "silent: Jupyter can tell that nothing goes on"


def test_a_notebook_without_a_page_keeps_its_engine(panel, bench, press):
    press(panel, "start")
    panel.board.heard_s -= 1e6
    panel._refresh()
    panel._actions.wait()
    assert bench.engine.state == "ready"


def test_the_prefix_cache_is_emptied(panel, bench, monkeypatch, press, settle):
    emptied = []
    monkeypatch.setattr(bench, "reset_prefix_cache", lambda: emptied.append(1), raising=False)
    press(panel, "start")
    assert panel.knob_form.empty.disabled, "this engine has no cache"
    panel.knob_form.bind(bench.engine.envelope, bench.engine.knobs, caches=True)
    panel.knob_form.empty.press()
    settle(panel)
    assert emptied == [1]


def test_policies_are_compared_and_stopped_by_the_same_button(panel, bench, monkeypatch, press, settle, until):
    begun, over = threading.Event(), threading.Event()
    asked = []

    def compare(scenario, *, settings, follow):
        asked.append([setting.name for setting in settings])
        begun.set()
        over.wait(20)
        return PolicyRuns(scenario.name, scenario.slo)

    monkeypatch.setattr(bench, "compare_policies", compare, raising=False)
    monkeypatch.setattr(bench, "stop_load", lambda *_: over.set())
    assert panel.policy_form.button.disabled, "there is no engine"
    press(panel, "start")
    panel.policy_form.policies["monolithic"].put(False)
    panel.policy_form.button.press()
    assert begun.wait(20)
    assert until(lambda: panel.policy_form.button.text == "Stop comparing")
    assert panel.buttons.run.disabled, "one load at a time"
    panel.policy_form.button.press()
    settle(panel)
    assert panel.policy_form.button.text == "Compare policies"
    assert len(asked[0]) == 5
    assert panel._log.errors == ()


def test_nobody_reads_ready_before_the_knobs_can_be_turned(panel, bench, until):
    seen = []
    push = panel.board.push

    def looked_at(changes, status, *more):
        seen.append((status["state"].startswith("ready"), panel.knob_form.disabled))
        push(changes, status, *more)

    panel.board.push = looked_at
    bench.engine.start()
    assert until(lambda: any(ready for ready, _ in seen))
    assert (True, True) not in seen


def test_a_panel_is_few_widgets_for_a_page_to_load(bench):
    before = set(ipywidgets.widgets.widget._instances)
    panel = Panel(bench)
    made = set(ipywidgets.widgets.widget._instances) - before
    panel.close()
    assert len(made) <= 12


def test_a_preset_that_needs_hot_knobs_turns_them_once_the_engine_runs(panel, bench, monkeypatch, press):
    turned = {name: one for name, one in presets().items() if one.changes}
    assert turned, "thrash lets requests in without room for their whole prompts"
    name, one = next(iter(turned.items()))
    panel.start_form.preset.choose(name)
    bench.engine.config = panel.start_form.config
    monkeypatch.setattr(bench, "configure", lambda **_: bench.config)
    press(panel, "start")
    assert panel._log.errors == ()
    assert {field: getattr(bench.engine.knobs, field) for field in one.changes} == dict(one.changes)


def test_while_a_study_holds_the_engine_nothing_beside_it_can_be_turned_or_played(panel, bench, press, pressable):
    press(panel, "start")
    before = pressable(panel)
    assert {"run", "drop"} <= before
    with bench.held("study one"):
        panel._refresh()
        assert panel.knob_form.controls["budget"].disabled
        (said,) = [part.text for part in panel.knob_form.parts if part.id == "knob_problem"]
        assert said.startswith("Locked: study one goes on")
        assert pressable(panel) == before - {"run", "drop"}
    panel._refresh()
    assert not panel.knob_form.controls["budget"].disabled
    assert pressable(panel) == before
