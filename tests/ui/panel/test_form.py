"""A form and its parts as the page gets them; what the page makes of them is in tests/browser."""

from __future__ import annotations

import pytest

from workbench.i18n import speaking, spoken
from workbench.ui.panel.controls import Control
from workbench.ui.panel.form import Form
from workbench.ui.panel.knobs import KnobForm
from workbench.ui.panel.load import LoadForm
from workbench.ui.panel.parts import Button, Drawer, Pane, Text, row, section
from workbench.ui.panel.policies import PolicyForm
from workbench.ui.panel.startup import StartUpForm


def of_page(form, **message):
    """As the page would send it."""
    form._take(form, message, [])


@pytest.fixture
def flag():
    return Control("check", "flag", "flag", "A flag.", default=True)


def test_a_form_is_one_widget_with_all_parts_in_it(flag):
    form = Form([section("one", "One", "hint", [flag, row("two", [Button("go", "Go", "Goes.")])])])
    (top,) = form.tree
    assert (top["kind"], top["title"]) == ("section", "One")
    assert [part["id"] for part in top["parts"]] == ["flag", "two"]
    assert top["parts"][0] == {"kind": "check", "id": "flag", "label": "flag", "hint": "A flag.", "value": True,
                               "heard": None}  # fmt: skip


def test_a_change_is_told_at_once_and_none_is_not(flag):
    form, told = Form([flag]), []
    form.observe(lambda change: told.append(change.new[0]["value"]), names="tree")
    flag.show(False)
    flag.show(False)
    assert told == [False]


def test_several_changes_together_are_told_as_one(flag):
    text = Text("said")
    form, told = Form([flag, text]), []
    form.observe(lambda _: told.append(1), names="tree")
    with flag.together():
        flag.show(False)
        text.text = "now"
        with text.together():
            flag.hint = "Another."
        assert not told
    assert told == [1]
    assert (form.tree[0]["value"], form.tree[0]["hint"], form.tree[1]["text"]) == (False, "Another.", "now")


def test_a_persons_change_comes_with_a_tag_that_is_told_back(flag):
    form, told = Form([flag]), []
    flag.observe(lambda: told.append(flag.value))
    of_page(form, id="flag", value=False, tag="page:7")
    assert told == [False]
    assert (form.tree[0]["value"], form.tree[0]["heard"]) == (False, "page:7")


def test_a_receiver_that_refuses_puts_back_what_is_in_force_after_it_was_heard(flag):
    form = Form([flag])
    flag.observe(lambda: flag.show(True))
    of_page(form, id="flag", value=False, tag="page:8")
    assert (form.tree[0]["value"], form.tree[0]["heard"]) == (True, "page:8")


def test_a_disabled_button_is_not_pressed():
    button, pressed = Button("go", "Go", "Goes."), []
    form = Form([button])
    button.on_press(lambda: pressed.append(1))
    of_page(form, id="go")
    button.disabled = True
    of_page(form, id="go")
    assert pressed == [1]


def test_messages_that_make_no_sense_are_left_alone(flag):
    form = Form([flag])
    for message in ({}, {"id": "nobody"}, {"id": "flag"}, {"id": ["flag"], "value": False}):
        of_page(form, **message)
    form._take(form, "text", [])
    assert flag.value is True


def test_a_pane_is_sent_when_it_is_asked_for_and_not_with_the_form(monkeypatch):
    pane, sent = Pane("log"), []
    form = Form([Drawer("drawer", "Log", [pane])])
    monkeypatch.setattr(form, "send", sent.append)
    pane.markup = "<b>long</b>"
    assert "long" not in str(form.tree)
    assert form.tree[0]["parts"][0]["version"] == 1
    of_page(form, id="log")
    assert sent == [{"id": "log", "markup": "<b>long</b>", "version": 1}]


def test_each_control_of_each_form_has_a_label_and_a_hint_of_its_own():
    load = LoadForm()
    for one in (StartUpForm(), KnobForm(), load):
        controls = [part for top in one.parts for part in top.all() if isinstance(part, Control)]
        assert all(control.label and control.hint for control in controls)
        assert len({control.hint for control in controls}) == len(controls)
    assert "class 2" in load.long_tokens.hint


def test_ids_differ_in_a_form():
    for parts in (StartUpForm().parts, KnobForm().parts, LoadForm().parts, (PolicyForm().drawer,)):
        ids = [part.id for top in parts for part in top.all()]
        assert len(set(ids)) == len(ids)


def test_a_form_speaks_the_language_that_it_was_made_in_and_its_parts_keep_their_words():
    button = Button("go", "Run load", "Goes.")
    heard = []
    button.on_press(lambda: heard.append(spoken()))
    with speaking("zh"):
        form = Form([section("one", "Start-up", "a change needs a restart", [button])])
    (top,) = form.tree
    assert (top["title"], top["hint"]) == ("启动参数", "改动需要重启")
    assert (top["parts"][0]["text"], top["parts"][0]["hint"]) == ("运行负载", "Goes.")
    button.text = "Stop load"  # from wherever: the kernel speaks English
    assert form.tree[0]["parts"][0]["text"] == "停止负载"
    assert button.text == "Stop load"
    of_page(form, id="go")
    assert heard == ["zh"]
    assert spoken() == "en"


def test_labels_and_hints_of_fields_are_in_that_language():
    with speaking("zh"):
        budget = KnobForm().controls["budget"]
    assert budget.label == "token 预算（token）"
    assert budget.hint == "budget: token 预算：单个调度步最多的 token 数。"
