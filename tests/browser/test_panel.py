"""The panel in JupyterLab and Chromium on the real vLLM engine, driven as a person would."""

from __future__ import annotations

import itertools
import json
import re
import time

import psutil
import pytest

from benchmarks.parts.notebook import Notebook
from tests.browser.sliders import slide
from workbench.ui.charts import LIGHT

pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]

VIEWPORT = {"width": 1440, "height": 1200}
CELL = "from workbench import Workbench\nwb = Workbench(model='smollm2')\npanel = wb.panel()\npanel"
STEPS = "Step make-up"
CELLS = [CELL, "import time\nwhile True: time.sleep(0.01)", "1 / 0"]
READY_MS, SOON_MS = 240_000, 60_000


class PanelPage:
    """What a person sees and does."""

    def __init__(self, notebook):
        self.notebook, self.page = notebook, notebook.page
        notebook.run(0)
        self.page.wait_for_selector(".wb-board canvas", timeout=60_000)

    def press(self, name):
        self.page.get_by_role("button", name=name, exact=True).click(timeout=SOON_MS)

    def state(self, *words, timeout=SOON_MS):
        """Wait until the line above the charts says all of this."""
        says = "(words) => words.every((one) => document.querySelector('.wb-state')?.textContent.includes(one))"
        self.page.wait_for_function(says, arg=list(words), timeout=timeout)

    def slide(self, name, value):
        """Move a slider with the arrow keys until it says the value."""
        slide(self.page, name, value)

    def python(self, code):
        """Run code in the kernel; gives back what it printed, as JSON."""
        return json.loads(self.notebook.execute(f"import json\nprint(json.dumps({code}))"))

    def chunks(self, request):
        """Tokens of each step that carried the prompt of this request."""
        batch = "[row['tokens'] for row in wb.current_run.trace.tables['batch'].to_pylist() "
        return self.python(batch + f"if row['request'] == {request!r} and row['prefill']]")

    def prefilled(self, request, tokens):
        """Wait until the whole prompt has been prefilled."""
        end = time.monotonic() + 240
        while sum(self.chunks(request)) < tokens:
            assert time.monotonic() < end, f"{request} was not prefilled"
            time.sleep(0.5)

    def chart(self, title):
        return self.page.locator("figure.wb-chart").filter(has=self.page.get_by_role("heading", name=title))

    def rows(self):
        """How many rows the page draws: dataset by dataset."""
        board = "document.querySelector('.wb-board').parentElement.__board"
        held = self.page.evaluate(f"() => {board}.ids()")
        return {f"{chart} {name}": len(ids) for chart, sets in held.items() for name, ids in sets.items()}


@pytest.fixture
def panel(open_notebook):
    """Without an engine."""
    return PanelPage(open_notebook(CELLS, viewport=VIEWPORT))


@pytest.fixture(scope="module")
def starting(browser, lab, request):
    """Open a panel whose engine starts; those of two tests start together, which takes little longer than one."""
    wanted = sum("running" in getattr(item, "fixturenames", ()) for item in request.session.items)
    names, begun = itertools.count(1), []

    def begin():
        panel = PanelPage(Notebook(browser, lab, CELLS, name=f"panel-{next(names)}", viewport=VIEWPORT))
        panel.press("Start engine")
        return panel

    def take():
        nonlocal wanted
        while not begun or wanted > 0:  # a second try of a test begins one more
            begun.append(begin())
            wanted -= 1
        return begun.pop(0)

    yield take
    for panel in begun:
        panel.notebook.close()


@pytest.fixture
def running(starting):
    """A panel whose engine is up."""
    panel = starting()
    try:
        panel.state("ready", timeout=READY_MS)
        yield panel
    finally:
        panel.notebook.close()
    assert panel.notebook.complaints == []


def engine_processes(panel):
    """All processes of the engine that runs, the client's included."""
    kernel = psutil.Process(panel.python("__import__('os').getpid()"))
    return kernel.children(recursive=True)


def gone(processes, seconds=10.0):
    _, alive = psutil.wait_procs(processes, timeout=seconds)
    return not [process for process in alive if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


def heights(picture, colour, tolerance=30):
    """For each column of a picture, how many of its pixels have the colour."""
    import numpy as np

    wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
    near = (abs(np.asarray(picture).astype(int) - wanted) < tolerance).all(axis=2)
    return near.sum(axis=0)


def explained(panel, screenshot):
    """Stalls by cause with a list, and what stands behind a point, by mouse and by keys."""
    page, box = panel.page, panel.page.locator(".wb-detail")
    page.get_by_label("window", exact=True).select_option(label="2 min")
    page.wait_for_selector(".wb-kpis div[title*='last 120 s']")  # charts and list are of that window now
    strip = page.locator(".wb-stalls > button")
    strip.wait_for()
    assert re.match(r"Stalls: prefill \d+.* · explained \d+%", strip.inner_text())
    strip.press("Enter")
    assert strip.get_attribute("aria-expanded") == "true"
    row = page.locator(".wb-stalls tbody tr", has_text=re.compile(r"prefill of (dropped|document)-\d+")).first
    row.wait_for()
    screenshot(page, "stalls")
    row.get_by_role("button").press("Enter")
    box.get_by_text("Gap of ").wait_for()
    told = box.inner_text()
    behind = re.search(r"prefill of ([a-z]+-\d+)", told)
    assert behind, told
    assert re.search(rf"{behind[1]} \(\w+, priority \d\), a prompt of [\d,]+ tokens in \d+ step", told), told
    screenshot(page, "gap")
    strip.press("Enter")
    box.get_by_role("button", name="Close").click()

    plot = panel.chart(STEPS).locator(".wb-plot")
    plot.press("Enter")  # the longest step in sight
    box.get_by_text(re.compile(r"^Step [\d,]+ at ")).wait_for()
    longest = box.inner_text()
    assert "prefill tokens" in longest
    box.get_by_role("button", name="Step before").click()
    page.wait_for_function("(before) => document.querySelector('.wb-detail').innerText !== before", arg=longest)
    place = plot.bounding_box()
    plot.click(position={"x": place["width"] / 2, "y": place["height"] / 2})
    box.get_by_text(re.compile(r"^Step [\d,]+ at ")).wait_for()
    assert page.locator(".wb-band:not([hidden])").count() == 4, "marked on all charts"
    screenshot(page, "step")
    box.get_by_role("button", name="Close").click()
    assert page.locator(".wb-band:not([hidden])").count() == 0


def knobs_of_a_policy(panel, screenshot):
    """A policy shows its own knobs; a switch of the KV memory reaches the engine."""
    page = panel.page
    assert page.get_by_role("slider", name="target gap (ms)").is_hidden()
    page.get_by_label("policy", exact=True).select_option(label="target_gap")
    page.get_by_role("slider", name="target gap (ms)").wait_for()
    assert page.get_by_role("slider", name="aging (s)").is_hidden()
    page.get_by_role("button", name="KV memory").press("Enter")
    page.get_by_label("reserve whole prompt").click()
    until(lambda: panel.python("[wb.engine.knobs.policy, wb.engine.knobs.reserve_full]") == ["target_gap", False])
    assert page.get_by_role("button", name="Empty prefix cache").is_disabled(), "this engine has none"
    screenshot(page.locator(".wb-left"), "knobs")
    page.get_by_label("reserve whole prompt").click()
    page.get_by_label("policy", exact=True).select_option(label="chunked")
    until(lambda: panel.python("[wb.engine.knobs.policy, wb.engine.knobs.reserve_full]") == ["chunked", True])


def compared(panel, screenshot):
    """The same small load under two policies, one after the other, then their chart and figures."""
    page = panel.page
    fold = page.get_by_role("button", name=re.compile("^. Compare policies"))
    drawer = page.locator(".wb-drawer").filter(has=fold)
    fold.press("Enter")
    drawer.get_by_label("workload mix").select_option(label="policies")
    for name in ("monolithic", "decode_first", "chunked", "target_gap"):
        drawer.get_by_label(name, exact=True).uncheck()
    drawer.get_by_text("2 runs of about").wait_for()
    panel.press("Compare policies")
    drawer.get_by_text("(2 of 2)").wait_for(timeout=120_000)
    screenshot(page, "comparing")
    drawer.locator("svg").first.wait_for(timeout=120_000)
    table = drawer.locator("table").inner_text()
    for word in ("priority", "qos", "vip"):
        assert word in table
    screenshot(drawer, "compared")


def until(true, seconds=30):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.2)


def test_a_slider_splits_the_next_long_prompt_and_all_survives_a_reload(running, screenshot):
    panel = running
    processes = engine_processes(panel)
    assert len(processes) >= 3, "API server, engine core, client"
    panel.slide("budget (tokens)", "1,024")
    panel.press("Run load")
    panel.state("playing interactive")
    panel.slide("long prompt (tokens)", "2,048")
    panel.press("Drop a long prompt now")
    panel.prefilled("dropped-0", 2048)
    screenshot(panel.page, "before")
    panel.slide("budget (tokens)", "64")
    panel.press("Drop a long prompt now")
    panel.prefilled("dropped-1", 2048)
    first, second = panel.chunks("dropped-0"), panel.chunks("dropped-1")
    assert max(first) > 900
    assert max(second) <= 64
    assert len(second) >= 32 > len(first)
    picture = screenshot(panel.chart(STEPS), "split")
    assert heights(picture, LIGHT.decode).sum() > 100, "decodes are drawn"
    screenshot(panel.page, "after")
    explained(panel, screenshot)
    knobs_of_a_policy(panel, screenshot)

    before = panel.rows()
    panel.notebook.reload()
    panel.page.wait_for_selector(".wb-board canvas", timeout=60_000)
    panel.state("playing interactive")
    assert panel.page.locator(".wb-board canvas").count() == 4
    mainly = ("gaps gaps", "steps bars", "memory peaks", "queue kv")
    end = time.monotonic() + 30
    while not all(panel.rows().get(name, 0) > 0.5 * before[name] for name in mainly):
        assert time.monotonic() < end, f"the last window is not back: {before} then {panel.rows()}"
        time.sleep(0.2)
    picture = screenshot(panel.chart(STEPS), "reloaded")
    assert heights(picture, LIGHT.decode).sum() > 100

    panel.press("Stop load")
    compared(panel, screenshot)

    panel.notebook.run(0)  # the cell again: another workbench takes over, the engine of the one before ends
    assert gone(processes)
    panel.page.wait_for_selector(".wb-board canvas", timeout=60_000)
    assert panel.page.locator(".wb-board").count() == 1


def test_buttons_work_while_a_cell_is_busy_and_a_restarted_kernel_leaves_nothing(running, screenshot):
    panel = running
    processes = engine_processes(panel)
    panel.notebook.run(1, wait=False)  # busy for ever
    panel.press("Run load")
    panel.state("playing interactive")
    panel.press("Stop load")
    panel.page.wait_for_function("() => !document.querySelector('.wb-state').textContent.includes('playing')")
    panel.notebook.kernel("interrupt")
    panel.page.locator(".jp-OutputArea-output").filter(has_text="KeyboardInterrupt").wait_for(timeout=SOON_MS)
    panel.state("ready")  # an interrupt ends the cell, not the engine
    panel.press("Run load")
    panel.state("playing interactive")
    panel.notebook.kernel("restart")
    assert gone(processes)
    panel.page.wait_for_selector(".wb-stale:not([hidden])", timeout=SOON_MS)
    screenshot(panel.page, "restarted")


def test_errors_are_said_in_the_panel(panel, screenshot):
    model = panel.page.get_by_label("model", exact=True)
    model.fill("/no/such/model")
    model.press("Enter")
    panel.press("Start engine")
    alert = panel.page.locator(".wb-trouble").get_by_role("alert")
    alert.wait_for(timeout=SOON_MS)
    assert "/no/such/model" in alert.inner_text()
    screenshot(panel.page, "error")
    panel.press("Dismiss")
    alert.wait_for(state="hidden")
    panel.page.get_by_role("button", name="Log · 1 error").press("Enter")
    panel.page.locator(".wb-log").get_by_text("/no/such/model").wait_for()
