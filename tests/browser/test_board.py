"""The board in JupyterLab and Chromium: what a person sees, and what the page does when nobody looks."""

from __future__ import annotations

import json

import numpy as np
import pytest

from benchmarks.parts.notebook import PANEL, Notebook

SETUP = """
import json, threading, time
import ipywidgets
from workbench.ui.live.board import Board
from workbench.ui.live.busy import answer_while_busy
from workbench.ui.live.changes import BoardChart, Changes

NAMES = ["gaps", "steps", "memory", "queue"]

def spec(colour, right):
    x = {"field": "t", "type": "quantitative", "scale": {"domain": [{"expr": "t0"}, {"expr": "t1"}], "nice": False}}
    y = {"field": "v", "type": "quantitative", "scale": {"domain": [0, 100]}, "axis": {"orient": right}}
    point = {"type": "point", "clip": True, "filled": True, "opacity": 1, "color": colour}
    return {"width": "container", "height": 120, "data": {"name": "points"},
            "title": {"text": "not shown", "subtitle": "made up"},
            "params": [{"name": "t0", "value": 0}, {"name": "t1", "value": 10}],
            "mark": point, "encoding": {"x": x, "y": y, "tooltip": [{"field": "v"}]}}

def charts():
    sides = {"steps": "right"}
    return [BoardChart(name, name.title(), f"Points of {name}.", *(spec(colour, sides.get(name, "left"))
            for colour in ("#0072b2", "#e69f00"))) for name in NAMES]

def fresh():
    global board, state
    board, state = Board(), {"state": "ready"}
    board.show(charts(), {"t0": 0.0, "t1": 10.0})

fresh()

def push(first=0, n=0, drop=(), t0=0.0, t1=10.0):
    rows = [{"id": i, "t": i * 0.05, "v": i % 100} for i in range(first, first + n)]
    board.push(Changes({name: {"points": rows} for name in NAMES} if rows else {},
                       {name: {"points": list(drop)} for name in NAMES} if drop else {}, {"t0": t0, "t1": t1}),
               {"kpis": [{"label": "gap P50", "value": "31", "hint": "ms"}], "badge": "live CPU", **state})
"""
PRESS = """
pressed = []
button = ipywidgets.Button(description="press")
answer_while_busy(button)
button.on_click(lambda _: pressed.append(threading.current_thread() is threading.main_thread()))
button
"""
BUSY = """
for _ in range(600):
    if pressed: break
    time.sleep(0.1)
found = list(pressed)
"""
BOARD = "document.querySelector('.wb-board').parentElement.__board"
CHARTS = ("gaps", "steps", "memory", "queue")
BLUE, ORANGE = (0, 114, 178), (230, 159, 0)


def settled(page):
    """Wait until two frames have gone by since the last message; the page's message chain is empty then."""
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def held(page):
    """Ids that Vega holds, of each chart."""
    return {chart: sets.get("points", []) for chart, sets in page.evaluate(f"() => {BOARD}.ids()").items()}


def wait_for_rows(page, n):
    page.wait_for_function(
        f"(n) => {{ const ids = Object.values({BOARD}.ids()); "
        "return ids.length === 4 && ids.every((sets) => (sets.points ?? []).length === n); }",
        arg=n,
    )
    settled(page)


def shown_window(page):
    settled(page)
    return [float(page.locator(".wb-board").get_attribute(f"data-{name}")) for name in ("t0", "t1")]


def near(image, colour, slack=10):
    """Which pixels have the colour, rows by columns."""
    return (abs(np.asarray(image).astype(int) - colour) <= slack).all(axis=2)


def pixels(image, colour):
    return int(near(image, colour).sum())


@pytest.fixture(scope="module")
def shared(browser, lab):
    """One notebook for all tests of this file."""
    with Notebook(browser, lab, [SETUP, "board", "board", PRESS, BUSY], name="board") as notebook:
        notebook.run(0)
        yield notebook


@pytest.fixture
def opened(shared):
    """The notebook, which shows a new board with 100 rows a chart and nothing else, and its page."""

    def open_():
        notebook, page = shared, shared.page
        notebook.command("notebook:clear-all-cell-outputs")
        page.wait_for_selector(".wb-board", state="detached")
        notebook.execute("fresh()")
        notebook.run(1)
        page.wait_for_selector(".wb-board canvas")
        notebook.execute("push(0, 100)")
        wait_for_rows(page, 100)
        return notebook, page

    yield open_
    assert shared.complaints == []


def test_four_charts_of_one_width_with_figures_and_names(opened, screenshot):
    _, page = opened()
    image = screenshot(page.locator(".wb-board"))
    assert pixels(image, BLUE) > 4 * 100 * 5  # each point some pixels
    assert page.locator(".wb-chart h3").all_text_contents() == ["Gaps", "Steps", "Memory", "Queue"]
    assert page.locator(".wb-chart figcaption p").first.text_content() == "made up"
    assert page.locator(".wb-badge").inner_text() == "live CPU"
    assert page.locator(".wb-kpis").inner_text().split("\n") == ["gap P50", "31"]
    plots = page.get_by_role("img", name="Points of")
    assert plots.count() == 4
    assert plots.nth(0).get_attribute("aria-label") == "Gaps. Points of gaps."
    # One point at one time stands at one x on all charts, though axes are on different sides.
    lefts = []
    for n in range(4):
        png = screenshot(plots.nth(n), f"plot-{n}")
        (columns,) = near(png, BLUE).any(axis=0).nonzero()
        lefts.append((columns[0], columns[-1]))
    assert max(a for a, _ in lefts) - min(a for a, _ in lefts) <= 1
    assert max(b for _, b in lefts) - min(b for _, b in lefts) <= 1


def test_rows_come_and_go_and_none_is_lost(opened):
    notebook, page = opened()
    notebook.execute("for n in range(40): push(100 + n * 10, 10, range(n * 10, n * 10 + 10), n * 0.5, n * 0.5 + 10)")
    page.wait_for_function(f"() => {BOARD}.ids().queue.points.includes(499)")
    settled(page)
    assert {chart: sorted(ids) for chart, ids in held(page).items()} == {name: list(range(400, 500)) for name in CHARTS}
    stats = page.evaluate(f"() => {BOARD}.stats")
    assert (stats["received"], stats["rowsLost"], stats["holes"]) == (41, 0, 0)
    assert stats["drawn"] <= 60
    assert shown_window(page) == [19.5, 29.5]


def test_a_lost_message_is_made_good(opened):
    notebook, page = opened()
    notebook.execute(
        "send, board.send = board.send, lambda message: None\npush(100, 5)\nboard.send = send\npush(105, 5)"
    )
    wait_for_rows(page, 110)
    stats = page.evaluate(f"() => {BOARD}.stats")
    assert (stats["holes"], stats["rowsLost"]) == (1, 0)


def test_reload_brings_back_the_last_window(opened, screenshot):
    notebook, page = opened()
    notebook.execute("push(100, 50, range(50), 2.5, 12.5)")
    page.wait_for_function(f"() => {BOARD}.ids().queue.points.includes(149)")
    before = screenshot(page.locator(".wb-charts"), "before")
    notebook.reload()
    page.wait_for_selector(".wb-board canvas")
    wait_for_rows(page, 100)
    page.wait_for_timeout(300)
    after = screenshot(page.locator(".wb-charts"), "after")
    assert shown_window(page) == [2.5, 12.5]
    assert held(page)["gaps"] == list(range(50, 150))
    assert abs(pixels(after, BLUE) - pixels(before, BLUE)) <= 0.02 * pixels(before, BLUE)
    notebook.execute("push(150, 1)")
    wait_for_rows(page, 101)


def test_an_output_that_jupyterlab_has_given_up_is_drawn_again(opened):
    """As after a reload on a busy machine: the output is drawn while the manager does not know the model yet."""
    notebook, page = opened()
    lost = page.evaluate(
        f"""async (view) => {{
            const panel = {PANEL};
            const cell = panel.content.widgets.find((one) => one.outputArea?.node.querySelector(".wb-board"));
            const json = cell.model.outputs.toJSON();
            const id = json.map((one) => one.data?.[view]?.model_id).find((one) => one);
            const renderer = [...cell.outputArea.widgets].flatMap((one) => [...one.children()])
                .find((one) => one._manager);
            const manager = await renderer._manager.promise;
            const real = manager.get_model;
            const refuse = () => Promise.reject(new Error("made up"));
            manager.get_model = (asked) => (asked === id ? refuse() : real.call(manager, asked));
            cell.model.outputs.clear();
            cell.model.outputs.add(json[json.length - 1]);
            await new Promise((done) => setTimeout(done, 500));
            manager.get_model = real;
            return cell.outputArea.node.textContent;
        }}""",
        "application/vnd.jupyter.widget-view+json",
    )
    assert "model not found" in lost
    page.wait_for_selector(".wb-board canvas", timeout=20_000)
    wait_for_rows(page, 100)
    assert "model not found" not in page.locator(".jp-Notebook").inner_text()
    assert all("made up" in said for said in notebook.complaints)
    notebook.complaints.clear()


def test_charts_follow_the_theme_with_their_rows(opened, screenshot):
    notebook, page = opened()
    notebook.theme(dark=True)
    try:
        page.wait_for_selector(".wb-board[data-theme=dark]")
        wait_for_rows(page, 100)
        image = screenshot(page.locator(".wb-board"))
    finally:
        notebook.theme(dark=False)
    assert pixels(image, ORANGE) > 4 * 100 * 5
    assert pixels(image, BLUE) == 0
    assert image.getpixel((2, image.height - 2))[0] < 60
    page.wait_for_selector(".wb-board[data-theme=light]")


def test_pause_freezes_the_picture_and_catches_up(opened, screenshot):
    notebook, page = opened()
    notebook.execute("board.paused = True")
    page.wait_for_selector(".wb-paused:not([hidden])")
    before = screenshot(page.locator(".wb-charts"), "before")
    notebook.execute("push(100, 50, range(50), 2.5, 12.5)")
    page.wait_for_function(f"() => {BOARD}.stats.received === 2")
    settled(page)
    assert held(page)["gaps"] == list(range(100))
    assert screenshot(page.locator(".wb-charts"), "after").tobytes() == before.tobytes()
    notebook.execute("board.paused = False")
    page.wait_for_function(f"() => {BOARD}.ids().queue.points.includes(149)")
    assert held(page)["gaps"] == list(range(50, 150))
    assert shown_window(page) == [2.5, 12.5]


def test_silence_is_called_stale_until_the_next_push(opened):
    notebook, page = opened()
    page.wait_for_selector(".wb-stale:not([hidden])")
    assert page.locator(".wb-stale").inner_text().startswith("stale: no data for ")
    notebook.execute("state['dropped'] = 1234\npush()")
    page.wait_for_selector(".wb-stale[hidden]", state="attached")
    assert page.locator(".wb-dropped").inner_text() == "1,234 records dropped"


def test_mouse_moves_and_zooms_all_charts_and_follow_returns(opened, screenshot):
    notebook, page = opened()
    box = page.locator(".wb-plot").nth(1).bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + 60
    assert page.locator(".wb-header button", has_text="Follow").is_hidden()
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 200, y, steps=4)
    page.mouse.up()
    t0, t1 = shown_window(page)
    assert 1.5 < t0 < 2.5
    assert t1 - t0 == pytest.approx(10)
    moved = screenshot(page.locator(".wb-charts"), "moved")
    assert pixels(moved, BLUE) < 4 * 100 * 30
    notebook.execute("push(100, 1, (), 1.0, 11.0)")  # the kernel goes on, the view stays
    wait_for_rows(page, 101)
    assert shown_window(page) == [t0, t1]
    page.keyboard.down("Shift")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Shift")
    near0, near1 = shown_window(page)
    assert t0 < near0 < near1 < t1
    assert near1 - near0 == pytest.approx(8)
    page.get_by_role("button", name="Follow").click()
    assert shown_window(page) == [1.0, 11.0]
    page.mouse.dblclick(x, y)
    assert shown_window(page) == [1.0, 11.0]


def test_keys_move_and_zoom_and_the_notebook_does_not_hear_them(opened):
    _, page = opened()
    plot = page.locator(".wb-plot").first
    plot.focus()
    active = "() => window.jupyterapp.shell.currentWidget.content.activeCellIndex"
    before = page.evaluate(active)
    for key, window in [("ArrowRight", [1, 11]), ("ArrowLeft", [0, 10]), ("+", [1, 9]), ("-", [0, 10])]:
        page.keyboard.press(key)
        assert shown_window(page) == pytest.approx(window)
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Home")
    assert shown_window(page) == [0, 10]
    page.keyboard.press("ArrowUp")
    page.keyboard.press("b")  # a new cell below, were it the notebook's
    assert page.evaluate(active) == before
    assert page.evaluate("() => window.jupyterapp.shell.currentWidget.content.widgets.length") == 5
    assert plot.evaluate("(node) => getComputedStyle(node).outlineStyle") == "solid"


def test_a_table_of_the_newest_rows(opened, screenshot):
    notebook, page = opened()
    notebook.execute("push(100, 200)")
    wait_for_rows(page, 300)
    toggle = page.get_by_role("button", name="Table of Memory")
    toggle.click()
    table = page.get_by_role("table", name="Memory, points")
    table.wait_for()
    screenshot(page.locator(".wb-board"))
    assert toggle.get_attribute("aria-pressed") == "true"
    assert table.locator("caption").inner_text() == "Memory, points: the newest 200 of 300 rows, newest first"
    assert table.get_by_role("columnheader").all_inner_texts() == ["t", "v"]
    assert table.locator("tbody tr").count() == 200
    assert table.locator("tbody tr").first.locator("td").all_inner_texts() == ["14.95", "99"]
    toggle.click()
    table.wait_for(state="detached" if page.locator(".wb-table table").count() == 0 else "hidden")
    wait_for_rows(page, 300)


def test_nothing_is_drawn_while_nobody_sees_it(opened):
    notebook, page = opened()
    notebook.execute("threading.Timer(6.0, push, (100, 20)).start()")
    notebook.command("launcher:create")  # a tab in front
    page.wait_for_function(f"() => {BOARD}.stats.received === 2")
    page.wait_for_timeout(300)
    assert held(page)["gaps"] == list(range(100))
    notebook.front()
    wait_for_rows(page, 120)


def test_text_to_copy_is_shown_and_closed_with_escape(opened, screenshot):
    notebook, page = opened()
    notebook.execute("board.copy('vllm serve smollm2 \\\\\\n  --max-num-seqs 32')")
    dialog = page.get_by_role("dialog")
    area = dialog.get_by_label("Text to copy")
    area.wait_for()
    assert area.input_value() == "vllm serve smollm2 \\\n  --max-num-seqs 32"
    assert area.evaluate("(area) => area.selectionEnd - area.selectionStart") == len(area.input_value())
    dialog.get_by_text("Copied to the clipboard.").wait_for()
    screenshot(page)
    page.keyboard.press("Escape")
    dialog.wait_for(state="detached")
    notebook.execute("board.copy('again')")
    page.get_by_role("dialog").get_by_role("button", name="Close").click()
    dialog.wait_for(state="detached")


def test_two_views_draw_the_same(opened):
    notebook, page = opened()
    notebook.run(2)
    page.wait_for_function("() => document.querySelectorAll('.wb-board').length === 2")
    page.locator(".wb-board").nth(1).scroll_into_view_if_needed()
    second = "[...document.querySelectorAll('.wb-board')][1].parentElement.__board"
    page.wait_for_function(f"() => {second}.ids().queue?.points?.length === 100")
    notebook.execute("push(100, 5)")
    page.wait_for_function(f"() => {second}.ids().queue.points.length === 105")


def test_new_charts_replace_the_old_ones(opened):
    notebook, page = opened()
    notebook.execute("board.show(charts()[:2], {'t0': 0.0, 't1': 5.0})")
    page.wait_for_function("() => document.querySelectorAll('.wb-chart').length === 2")
    assert page.locator(".wb-chart h3").all_text_contents() == ["Gaps", "Steps"]
    notebook.execute("board.push(Changes({'gaps': {'points': [{'id': 1, 't': 1.0, 'v': 50}]}}), {})")
    page.wait_for_function(f"() => {BOARD}.ids().gaps.points?.length === 1")
    assert shown_window(page) == [0, 5]


def test_a_chart_that_cannot_be_drawn_says_so_and_the_others_go_on(opened):
    notebook, page = opened()
    notebook.execute("board.push(Changes({'gaps': {'nobody': [{'id': 1}]}}), {})")
    said = page.get_by_role("alert")
    said.wait_for()
    assert said.inner_text().startswith("This chart cannot be drawn: ")
    notebook.execute("push(100, 5)")
    page.wait_for_function(f"() => {BOARD}.ids().queue.points.length === 105")
    assert [text for text in notebook.complaints if "chart gaps" in text] == notebook.complaints
    notebook.complaints.clear()


def test_messages_are_answered_while_a_cell_runs(opened):
    notebook, page = opened()
    notebook.run(3)
    notebook.run(4, wait=False)
    page.get_by_role("button", name="press").click()
    assert json.loads(notebook.execute("import json; print(json.dumps(found))")) == [False]


def test_follows_the_system_outside_jupyterlab(opened, screenshot):
    _, page = opened()
    page.emulate_media(color_scheme="dark")
    try:
        settled(page)
        assert page.locator(".wb-board").get_attribute("data-theme") == "light"  # JupyterLab's own word goes first
        page.evaluate("() => document.body.removeAttribute('data-jp-theme-light')")
        page.wait_for_selector(".wb-board[data-theme=dark]")
        wait_for_rows(page, 100)
        assert pixels(screenshot(page.locator(".wb-charts")), ORANGE) > 4 * 100 * 5
    finally:
        page.emulate_media(color_scheme="light")
        page.evaluate("() => document.body.setAttribute('data-jp-theme-light', 'true')")
    page.wait_for_selector(".wb-board[data-theme=light]")


def test_a_click_and_a_key_ask_what_stands_behind_a_point(opened, screenshot):
    notebook, page = opened()
    notebook.execute("asked = []\nboard.on_ask(asked.append)")
    asked = lambda: json.loads(notebook.execute("print(json.dumps(asked))"))  # noqa: E731
    plot = page.locator(".wb-plot").nth(1)  # whose axis is at the right: the plot begins at its left edge
    box = plot.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + 60)
    page.wait_for_timeout(300)
    (one,) = asked()
    assert one["kind"] == "explain"
    assert 4 < one["t"] < 6
    assert shown_window(page) == [0, 10], "a click is no drag"
    page.mouse.move(box["x"] + 300, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 200, box["y"] + 60, steps=3)
    page.mouse.up()
    page.wait_for_timeout(300)
    assert len(asked()) == 1, "a drag is no click"
    page.keyboard.press("Home")
    settled(page)
    page.evaluate(f"() => {BOARD}.rows().gaps.gaps = new Map([[1, {{ t: 3, gap: 700, stream: 'a' }}], "
                  "[2, { t: 4, gap: 900, stream: 'b' }]])")  # fmt: skip
    page.locator(".wb-plot").first.press("Enter")
    page.wait_for_timeout(300)
    assert asked()[-1] == {"kind": "explain", "t": 4, "stream": "b"}, "the longest in sight"


def test_an_explanation_is_a_box_with_a_mark_on_all_charts(opened, screenshot):
    notebook, page = opened()
    notebook.execute(
        "board.tell({'title': 'Gap of <b>a</b>', 'facts': [('gap', '700 ms'), ('cause', '<i>prefill</i>')], "
        "'t0': 2.0, 't1': 4.0, 'step': 12})"
    )
    box = page.locator(".wb-detail")
    box.get_by_text("Gap of <b>a</b>").wait_for()
    assert "<i>prefill</i>" in box.inner_text(), "text, never markup"
    page.wait_for_function("() => document.querySelectorAll('.wb-band:not([hidden])').length === 4")
    plot, band = page.locator(".wb-plot").first, page.locator(".wb-band").first.bounding_box()
    assert band["width"] == pytest.approx(0.2 * (plot.bounding_box()["width"] - 60), rel=0.1)  # 2 s of 10
    picture = screenshot(page.locator(".wb-plot").first)
    (points,) = near(picture, BLUE).any(axis=0).nonzero()
    left = band["x"] - plot.bounding_box()["x"]
    assert left == pytest.approx(points[0] + 0.4 * (points[-1] - points[0]), abs=4)  # of points from 0 to 5 s
    screenshot(page.locator(".wb-board"))
    notebook.execute("asked = []\nboard.on_ask(asked.append)")
    box.get_by_role("button", name="Step after").press("Enter")
    page.wait_for_timeout(300)
    assert json.loads(notebook.execute("print(json.dumps(asked[-1]))"))["step"] == 13
    box.get_by_role("button", name="Close").press("Enter")
    page.wait_for_function("() => document.querySelectorAll('.wb-band:not([hidden])').length === 0")


def test_stalls_are_listed_by_keyboard_and_ask_why(opened, screenshot):
    notebook, page = opened()
    assert page.locator(".wb-stalls").is_hidden()
    notebook.execute(
        "asked = []\nboard.on_ask(asked.append)\nboard.push(Changes(), {}, {'text': 'Stalls: prefill 1', 'hint': 'h', "
        "'caption': 'The newest', 'rows': [[3.25, 'chat-1', 1234.0, 'prefill', 'of doc-0']]})"
    )
    strip = page.get_by_role("button", name="Stalls: prefill 1")
    strip.press("Enter")
    assert strip.get_attribute("aria-expanded") == "true"
    row = page.locator(".wb-stalls tbody tr")
    assert row.inner_text().split("\t")[:5] == ["3.25", "chat-1", "1,234", "prefill", "of doc-0"]
    row.get_by_role("button", name="Why chat-1").press("Enter")
    page.wait_for_timeout(300)
    (one,) = json.loads(notebook.execute("print(json.dumps(asked))"))
    assert (one["t"], one["stream"]) == (3.25, "chat-1")
    screenshot(page.locator(".wb-board"))
    notebook.execute("board.push(Changes(), {}, {})")
    page.wait_for_selector(".wb-stalls", state="hidden")
