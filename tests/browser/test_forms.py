"""The forms of the panel with a keyboard and a screen reader: what Chromium's accessibility tree says of them."""

from __future__ import annotations

import json
import time

import pytest

from benchmarks.parts.notebook import Notebook
from tests.browser.sliders import says, slider

FORMS = """\
import json
import ipywidgets
from workbench.config import EngineConfig, Knobs
from workbench.ui.panel.form import Form
from workbench.ui.panel.knobs import KnobForm
from workbench.ui.panel.load import LoadForm
from workbench.ui.panel.startup import StartUpForm
def made():
    global sent, startup, knobs, load
    sent, startup, knobs, load = [], StartUpForm(), KnobForm(), LoadForm()
    knobs.on_change(sent.append)
    knobs.bind(envelope, envelope.defaults)
    return ipywidgets.VBox([Form(one.parts) for one in (startup, knobs, load)])
envelope = EngineConfig().envelope
"""


@pytest.fixture(scope="module")
def opened(browser, lab):
    """One page for all tests of this file."""
    with Notebook(browser, lab, [FORMS, "made()"], name="forms") as notebook:
        notebook.run(0)
        yield notebook
        assert notebook.complaints == []


@pytest.fixture
def notebook(opened):
    """The three forms, made anew."""
    page = opened.page
    page.evaluate("() => document.querySelectorAll('.wb-form').forEach((form) => (form.dataset.old = 'true'))")
    opened.run(1)
    page.wait_for_function(
        "() => document.querySelectorAll('.wb-form').length === 3 && !document.querySelector('[data-old]')"
    )
    page.get_by_role("slider", name="budget (tokens)").wait_for()
    return opened


def kernel(notebook, expression):
    return json.loads(notebook.execute(f"print(json.dumps({expression}))"))


def agree(notebook, expression, expected, seconds=30):
    """Wait until the kernel has it: the page knows of a change before."""
    end = time.monotonic() + seconds
    while (found := kernel(notebook, expression)) != expected:
        assert time.monotonic() < end, f"{expression} is {found}, expected {expected}"
        time.sleep(0.2)


def test_every_control_has_a_name_a_hint_and_a_label_that_is_whole(notebook, screenshot):
    page = notebook.page
    for drawer in ("More start-up fields", "KV memory"):
        page.get_by_role("button", name=drawer).click()
    page.get_by_label("block size (tokens)").wait_for()
    page.get_by_label("reserve whole prompt").wait_for()
    screenshot(page.locator(".jp-OutputArea-output").first)
    found = page.evaluate("""() => [...document.querySelectorAll(".wb-field:not([hidden])")].map((field) => {
        const label = field.querySelector("label");
        const part = field.querySelector("input, select");
        return {label: label.textContent, name: part.labels?.[0]?.textContent.trim(),
            hint: part.getAttribute("aria-description"), focus: part.tabIndex,
            cut: label.scrollWidth > label.clientWidth + 1 || label.scrollHeight > label.clientHeight + 1};
    })""")
    assert len(found) == 23 + 7 + 5  # every start-up field and the preset, the knobs of chunked, the load
    for one in found:
        assert one["name"], one
        assert one["hint"], one
        assert not one["cut"], one
        assert one["focus"] == 0, one


def test_a_slider_is_turned_by_keys_and_says_its_stop(notebook):
    page = notebook.page
    budget, chunk = slider(page, "budget (tokens)"), slider(page, "chunk (tokens)")
    assert budget.get_attribute("aria-valuetext") == "8,192"
    assert chunk.get_attribute("aria-valuetext") == "off"
    budget.focus()
    page.keyboard.press("ArrowLeft")
    chunk.focus()
    page.keyboard.press("ArrowRight")
    says(page, "chunk (tokens)", "16")
    says(page, "budget (tokens)", "4,096")
    agree(notebook, "sent", [{"budget": 4096}, {"chunk": 16}])


def test_a_drag_is_sent_once(notebook):
    page = notebook.page
    track = slider(page, "budget (tokens)")
    track.scroll_into_view_if_needed()
    box = track.bounding_box()
    page.mouse.move(box["x"] + box["width"] - 8, box["y"] + box["height"] / 2)
    page.mouse.down()
    for step in range(1, 11):  # to about the middle, where nothing clashes
        page.mouse.move(box["x"] + box["width"] * (1 - step / 20), box["y"] + 5)
    agree(notebook, "sent", [])
    page.mouse.up()
    agree(notebook, "len(sent) > 0", True)
    page.wait_for_timeout(300)
    sent = kernel(notebook, "sent")
    assert len(sent) == 1
    assert 32 <= sent[0]["budget"] < 8192


def test_what_a_person_is_at_stays_whatever_the_kernel_says(notebook):
    page = notebook.page
    model, budget = page.get_by_label("model", exact=True), slider(page, "budget (tokens)")
    model.press("End")
    model.type("-mine")
    budget.evaluate("(track) => (track.mine = true)")
    notebook.execute("startup.set({'max_num_seqs': 64}); knobs.bind(envelope, Knobs(budget=1000, max_running=5))")
    says(page, "budget (tokens)", "1,000")
    assert budget.evaluate("(track) => track.mine"), "the same element, not another in its place"
    assert model.input_value() == "smollm2-mine"
    assert model.evaluate("(field) => field === document.activeElement")
    model.press("Enter")
    agree(notebook, "startup.controls['model'].value", "smollm2-mine")


def test_a_value_from_code_is_shown_and_not_sent(notebook):
    page = notebook.page
    notebook.execute("knobs.show(Knobs(budget=1000, chunk=77, max_running=5))")
    says(page, "budget (tokens)", "1,000")
    says(page, "chunk (tokens)", "77")
    says(page, "running cap (requests)", "5")
    notebook.execute("small = EngineConfig(max_num_seqs=1).envelope; knobs.bind(small, small.defaults)")
    says(page, "running cap (requests)", "1")  # with one stop only
    agree(notebook, "sent", [])


def test_a_clash_is_an_alert(notebook):
    page = notebook.page
    budget = slider(page, "budget (tokens)")
    budget.focus()
    page.keyboard.press("Home")
    said = page.get_by_role("alert")
    said.wait_for()
    assert "budget and max_running: got '16 < 32'" in said.inner_text()
    page.get_by_label("policy", exact=True).wait_for()
    agree(notebook, "sent", [])


def test_a_preset_is_chosen_from_the_keyboard(notebook):
    page = notebook.page
    page.get_by_label("preset", exact=True).select_option(label="article (4 GPUs)")
    page.get_by_role("alert").wait_for()
    assert page.get_by_label("model", exact=True).input_value() == "meta-llama/Llama-3.1-70B-Instruct"
    agree(notebook, "startup.preset.value", "article")


def test_markup_in_a_value_stays_text(notebook):
    page = notebook.page
    model = page.get_by_label("model", exact=True)
    model.fill("<img src=x onerror=window.hurt=1>")
    model.press("Enter")
    port = page.get_by_text("More start-up fields")
    port.click()
    field = page.get_by_label("port", exact=True)
    field.fill("<b>1</b>")
    field.press("Enter")
    page.get_by_role("alert").wait_for()
    assert "<b>1</b>" in page.get_by_role("alert").inner_text()
    assert page.evaluate("window.hurt") is None
