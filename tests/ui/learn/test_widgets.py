"""The kernel's half of the learning widgets, without a page."""

import pytest

from workbench import Workbench
from workbench.learn import Lesson
from workbench.ui.learn import widget_bundle
from workbench.ui.learn.widgets import widget_of


@pytest.fixture(scope="module")
def run():
    return Workbench.open("data/runs/chat_and_long-budget-256")


@pytest.fixture
def lesson():
    return Lesson.of("00")


def say(widget, **message):
    widget._heard(widget, message, [])


def test_a_drawn_guess_reaches_the_prediction_and_the_reveal_the_page(lesson, run):
    guess = lesson.predict()
    widget = widget_of(guess)
    assert widget_of(guess) is widget
    say(widget, kind="draw", values=[20.0] * 31 + [5000.0])
    say(widget, kind="say", place=2, value="2500")
    assert guess.guessed
    assert guess.drawn[-1] == 5000
    assert widget.shown["numbers"][1]["value"] == 2500
    assert widget.shown["measured"] == []
    guess.reveal(run=run)
    assert max(value for value in widget.shown["measured"] if value is not None) == pytest.approx(3044.3, abs=0.1)
    assert widget.shown["origin"].startswith("recorded, live CPU")
    say(widget, kind="draw", values=[20.0] * 32)
    assert guess.drawn[-1] == 5000, "after the reveal it is too late"


@pytest.mark.parametrize(
    "message",
    [{}, {"kind": "draw"}, {"kind": "draw", "values": "x"}, {"kind": "say", "place": "1"}, {"kind": "sing"}],
)
def test_what_a_page_should_not_send_changes_nothing(lesson, message):
    guess = lesson.predict()
    say(widget_of(guess), **message)
    assert not guess.guessed


def test_a_wrong_guess_is_an_alert(lesson):
    widget = widget_of(lesson.predict())
    say(widget, kind="say", place=1, value="much")
    assert widget.shown["error"] == "guess: got 'much', expected a number; write one, such as 300"
    say(widget, kind="say", place=1, value="5")
    assert "error" not in widget.shown


def test_an_exercise_is_answered_in_its_box(lesson, run):
    exercise = lesson.exercise(1, run=run)
    widget = widget_of(exercise)
    (card,) = widget.shown["cards"]
    assert (card["kind"], card["state"], card["said"]) == ("entry", "open", "○ not answered yet")
    say(widget, kind="answer", card=0, value="1000")
    assert widget.shown["cards"][0]["state"] == "wrong"
    say(widget, kind="hint", card=0)
    assert len(widget.shown["cards"][0]["hints"]) == 1
    say(widget, kind="solution", card=0)
    assert widget.shown["cards"][0]["solution"]
    assert lesson.exercise(1) is exercise


def test_a_quiz_is_answered_by_its_buttons(lesson, run):
    quiz = lesson.quiz(run=run)
    widget = widget_of(quiz)
    assert len(widget.shown["cards"]) == 4
    (right,) = (one["value"] for one in widget.shown["cards"][0]["choices"] if "next scheduler step" in one["text"])
    say(widget, kind="answer", card=0, value=right)
    assert widget.shown["cards"][0]["state"] == "right"
    assert widget.shown["score"] == "1 of 4 right, 1 answered"
    say(widget, kind="answer", card=77, value="a")
    assert widget.shown["score"] == "1 of 4 right, 1 answered"


def test_no_kernel_no_widget(lesson):
    assert widget_bundle(lesson.predict()) == {}
    assert set(lesson.predict()._repr_mimebundle_()) == {"text/plain", "text/html"}
