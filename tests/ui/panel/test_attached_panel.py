"""The panel on somebody else's server, played by a stub; no browser."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.attached_config import AttachedConfig
from workbench.ui.panel.app import Panel
from workbench.ui.panel.startup import StartUpForm

STUB = Path(__file__).parents[2] / "engine" / "openai_stub.py"


@pytest.fixture(scope="module")
def panel(tmp_path_factory, settle):
    server = subprocess.Popen([sys.executable, STUB, json.dumps({})], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    url = f"http://127.0.0.1:{int(server.stdout.readline())}"
    with Workbench(engine="attached", url=url, runs=tmp_path_factory.mktemp("runs")) as bench:
        panel = Panel(bench).follow()
        panel.buttons.start.press()
        settle(panel)
        assert panel._log.errors == ()
        yield panel
        panel.close()
    server.kill()
    server.communicate()


def test_the_form_shows_how_it_is_reached_and_nothing_that_is_not_known(panel):
    form = panel.start_form
    assert (form.engine.value, form.server["url"].value) == ("attached", panel._bench.config.url)
    assert not any(one.hidden for one in form.server.values())
    shown = {name for name, one in form.controls.items() if not one.hidden}
    assert shown == {"model", "max_model_len", "start_timeout_s"}
    assert form.controls["max_model_len"].value == 4096  # the server said so
    assert form.controls["model"].tree()["placeholder"] == "the first that it serves"


def test_the_hot_knobs_are_grey_and_say_why(panel):
    form = panel.knob_form
    assert form.disabled
    assert all(one.disabled for one in form.controls.values())
    assert "started with our probe" in form.problem or "with our probe" in form.problem
    (said,) = [part for part in form.parts if part.id == "knob_problem"]
    assert said.text == form.problem
    assert panel.policy_form.button.disabled
    values = {form.controls[name].shown for name in ("budget", "chunk", "max_running", "policy")}
    assert values == {"n/a"}, "what that server was started with is not known"
    form.unbind()
    assert form.controls["budget"].shown == "8,192"
    form.explain(panel._bench.engine.why_no_knobs)


def test_buttons_say_what_they_do_to_a_server_that_is_not_ours(panel):
    assert (panel.buttons.start.text, panel.buttons.stop.text) == ("Attach", "Leave server")


def test_what_is_not_known_is_said_and_what_the_server_says_is_drawn(panel):
    charts = panel.board._snapshot()["charts"]
    assert [one["id"] for one in charts] == ["gaps", "rates", "queue", "latency"]
    assert "steps, batches and memory peaks" in panel.board._status["lacks"]


def test_a_load_is_played_and_its_numbers_are_labelled(panel, settle):
    assert not panel.buttons.run.disabled
    panel._bench.drop_long(64)
    assert panel._bench.current_run.wait(60)
    assert panel._bench.current_run.label.startswith("attached (127.0.0.1:")
    until = time.monotonic() + 60
    while not {"rates", "queue", "latency"} <= set(panel.board.rows):
        assert time.monotonic() < until, panel.board.rows.keys()
        time.sleep(0.05)
    assert {row["kv"] for row in panel.board.rows["queue"]["kv"].values()} == {25.0}
    assert not {"steps", "memory"} & set(panel.board.rows)
    settle(panel)
    assert panel._log.errors == ()


def test_the_command_of_somebody_elses_server_is_grey_and_says_why(panel, monkeypatch, settle):
    copied = []
    monkeypatch.setattr(panel.board, "copy", copied.append)
    for button in (panel.buttons.serve, panel.buttons.sglang):
        assert button.disabled
        assert "Nobody here knows what an attached server was started with" in button.hint
        button.take({})  # a press that was on its way
    settle(panel)
    assert (copied, panel._log.errors) == ([], ())
    assert not panel.buttons.code.disabled
    panel.buttons.call(attached=False)
    assert [one.disabled for one in (panel.buttons.serve, panel.buttons.sglang)] == [False, False]
    assert panel.buttons.serve.hint == "serve_command(): the plain vllm command with these knobs"
    panel.buttons.call(attached=True)


def test_the_form_alone_goes_to_attached_and_back():
    form = StartUpForm()
    assert all(one.hidden for one in form.server.values())
    form.engine.choose("attached")
    assert isinstance(form.config, AttachedConfig)
    assert form.problem is None
    form.server["url"].put("ftp://x")
    assert "an http or https address" in form.problem
    form.server["url"].put("http://h:1")
    assert form.values() == {"engine": "attached", "url": "http://h:1/v1", "start_timeout_s": 10.0}
    form.engine.choose("live")
    assert all(one.hidden for one in form.server.values())
    assert not any(one.hidden for one in form.controls.values())
