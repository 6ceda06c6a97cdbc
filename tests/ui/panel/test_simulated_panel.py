"""The panel on a simulated engine: vLLM's scheduler in a child, no weights, no browser."""

import pytest

from workbench import Workbench
from workbench.ui.panel.app import Panel


@pytest.fixture(scope="module")
def panel(tmp_path_factory, shared_simulator, settle):
    fields = {"engine": "simulated", "gpu": "H100", "count": 8, "max_model_len": 131072, "max_num_seqs": 32}
    with Workbench("llama-3.1-70b", runs=tmp_path_factory.mktemp("runs"), **fields) as bench:
        panel = Panel(bench).follow()
        assert panel.board._status.get("badge", "simulated") == "simulated"
        panel.buttons.start.press()
        settle(panel)
        assert panel._log.errors == ()
        yield panel
        panel.close()


def beside(panel):
    (one,) = [part for part in panel.knob_form.parts if part.id == "step_memory"]
    return one.text


def test_the_badge_says_how_good_the_numbers_are(panel, until):
    assert until(lambda: panel.board._status.get("badge") == "simulated · roofline, uncalibrated")
    assert panel._bench.config.engine == "simulated"
    assert panel._bench.config.gpus == 8
    assert panel.start_form.engine.value == "simulated"


def test_the_line_beside_the_budget_is_recomputed_when_the_slider_moves(panel):
    memory = panel._bench.engine.setup.memory
    assert beside(panel) == memory.beside(8192, 8192, 131072)
    panel.knob_form.controls["budget"].choose(512)
    assert beside(panel) == memory.beside(512, 8192, 131072)
    assert beside(panel).startswith("A step of 512 tokens needs 0.08 GiB of ")
    assert "unchunked, " in beside(panel)
    assert panel._bench.engine.knobs.budget == 512


def test_a_load_is_played_and_its_numbers_are_labelled(panel, settle, until):
    panel.load_form.scenario.choose("policies")
    panel.buttons.run.press()
    settle(panel)
    run = panel._bench.current_run
    assert run.wait(60)
    assert run.origin == "simulated · roofline, uncalibrated"
    assert until(lambda: panel.board._status.get("badge") == run.origin)
    assert until(lambda: panel.board._status["kpis"][0]["value"] != "n/a")
    assert panel._log.errors == ()
    assert {"compute_floor_s", "bandwidth_floor_s"} <= set(run.requests.columns)
    floors = run.floors
    assert len(floors) == len(run.requests)
    assert not floors["impossible"].any()


def test_a_comparison_of_policies_says_that_it_is_in_virtual_time(panel, settle):
    form = panel.policy_form
    assert "runs, simulated, in virtual time" in next(p for p in form.drawer.parts if p.id == "policy_time").text
    for name, one in form.policies.items():
        one.show(name in ("chunked", "qos"))
    form.button.press()
    settle(panel)
    assert panel._log.errors == ()
    result = next(part for part in form.drawer.parts if part.id == "policy_result").markup
    assert "simulated · roofline, uncalibrated" in result
    assert "in virtual time: the same seed" in result
    assert "compute_floor_s" in result
