"""Hints of a form's controls, by their labels; what the browser makes of them is in tests/browser."""

from __future__ import annotations

from workbench.config import SLO, Knobs
from workbench.ui.panel.aria import FORM, Spoken, form
from workbench.ui.panel.fields import control, hint_of, message
from workbench.ui.panel.knobs import KnobForm
from workbench.ui.panel.load import LoadForm
from workbench.ui.panel.startup import StartUpForm


def test_a_form_knows_the_hints_of_its_controls_and_follows_them():
    gap, policy = control(SLO, "gap_ms"), control(Knobs, "policy")
    box = form([gap.widget, policy.widget, message()])
    spoken = box.children[0]
    assert isinstance(spoken, Spoken)
    assert spoken.layout.display == "none"
    assert FORM in box._dom_classes
    assert spoken.hints == {"gap (ms)": hint_of(SLO, "gap_ms"), "policy": hint_of(Knobs, "policy")}
    gap.widget.tooltip = "another"
    assert spoken.hints["gap (ms)"] == "another"


def test_each_control_of_each_form_has_a_label_and_a_hint_of_its_own():
    startup, knobs, load = StartUpForm(), KnobForm(), LoadForm()
    counts = (len(startup.controls) + 1, len(knobs.controls), 3 + len(load.slo))
    for one, n in zip((startup, knobs, load), counts, strict=True):
        hints = one.widget.children[0].hints
        assert len(hints) == n
        assert all(hints.values())
        assert len(set(hints.values())) == n
