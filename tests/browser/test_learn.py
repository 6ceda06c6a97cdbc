"""Predict, reveal, an exercise and a quiz in JupyterLab and Chromium, over a recorded run: no engine."""

from __future__ import annotations

import json
import time

import pytest

from benchmarks.parts.notebook import Notebook

CELLS = [
    """\
import json
from workbench import Workbench
from workbench.learn import Lesson
lesson = Lesson.of("00")
run = Workbench.open("data/runs/chat_and_long-budget-256")
guess = lesson.predict()
guess""",
    "guess.reveal(run=run)",
    "ex1 = lesson.exercise(1, run=run)\nex1()",
    "quiz = lesson.quiz(run=run)\nquiz",
]


def kernel(notebook, expression):
    return json.loads(notebook.execute(f"print(json.dumps({expression}))"))


def agree(notebook, expression, expected, seconds=30):
    """Wait until the kernel has it: the page knows of a change before."""
    end = time.monotonic() + seconds
    while (found := kernel(notebook, expression)) != expected:
        assert time.monotonic() < end, f"{expression} is {found}, expected {expected}"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def notebook(browser, lab):
    """One page for both tests."""
    with Notebook(browser, lab, CELLS, name="learn") as book:
        book.run(0)
        book.page.locator(".wb-learn-plot").wait_for(timeout=60_000)
        yield book
        assert book.complaints == []


def test_a_guess_is_drawn_and_revealed(notebook, screenshot):
    page = notebook.page
    plot = page.locator(".wb-learn-plot")
    assert "stands in" in page.locator(".wb-learn").inner_text()
    box = plot.bounding_box()
    left, width = box["x"] + 64 / 720 * box["width"], 648 / 720 * box["width"]
    page.mouse.move(left + width * 0.3, box["y"] + box["height"] * 0.5)
    page.mouse.down()
    page.mouse.move(left + width * 0.6, box["y"] + box["height"] * 0.2, steps=12)
    page.mouse.up()
    agree(notebook, "guess.guessed", True)
    drawn = kernel(notebook, "guess.drawn")
    # 32 columns: the drag went from column 9 to 19, upwards; the others still stand in.
    assert drawn[:9] == [100.0] * 9
    assert drawn[20:] == [100.0] * 12
    assert 100 < drawn[9] < drawn[19]
    assert all(drawn[at] <= drawn[at + 1] for at in range(9, 19))
    plot.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("PageUp")
    agree(notebook, "guess.drawn[20] > 100", True)
    page.get_by_label("longest gap", exact=True).fill("1000")
    page.keyboard.press("Enter")
    agree(notebook, "guess.numbers['longest gap']", 1000.0)
    screenshot(page, "drawn")
    notebook.run(1)
    page.locator(".wb-learn-measured").first.wait_for(state="attached", timeout=60_000)
    page.locator(".wb-static svg").wait_for(timeout=60_000)
    said = page.locator(".wb-learn li").all_inner_texts()
    assert said[1] == "longest gap: you expected 1,000 ms; it was 3,044 ms: 3 times more."
    assert "recorded, live CPU" in page.locator(".wb-learn").inner_text()
    assert plot.get_attribute("aria-readonly") == "true"
    screenshot(page, "revealed")


def test_an_exercise_and_a_quiz_are_answered(notebook, screenshot):
    page = notebook.page
    for number in (2, 3):
        notebook.run(number)
    exercise = page.get_by_role("region", name="Exercise 1: count the steps")
    exercise.get_by_label("Your answer").fill("1000")
    exercise.get_by_role("button", name="Check").click()
    exercise.get_by_text("is too much by").wait_for()
    exercise.get_by_role("button", name="Hint").click()
    exercise.get_by_role("listitem").wait_for()
    exercise.get_by_label("Your answer").fill(str(kernel(notebook, "ex1.true.value")))
    page.keyboard.press("Enter")
    exercise.get_by_text("✔").wait_for()
    page.get_by_role("button", name="in the next scheduler step").click()
    page.get_by_text("✔ in the next scheduler step").wait_for()
    page.get_by_role("button", name="for a free slot").click()
    page.get_by_text("✘ for a free slot").wait_for()
    assert page.locator(".wb-learn-score").last.inner_text() == "1 of 4 right, 2 answered"
    screenshot(page, "answered")
    notebook.theme(dark=True)
    try:
        screenshot(page, "dark")
    finally:
        notebook.theme(dark=False)  # the next test has the same JupyterLab
    assert len(kernel(notebook, "quiz.given")) == 2
