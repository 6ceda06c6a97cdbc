"""Choices that are computed, explanations, and the score."""

from collections import Counter

import pytest

from workbench import Workbench
from workbench.learn.content import Question, content
from workbench.learn.quiz import Quiz, item_of

STEPS = Question.model_validate(
    {
        "prompt": "How many?",
        "number": {"right": "prefill_steps", "of": ["run"]},
        "times": [0.1, 2.0, 0.2],
        "why": "{value} it is.",
    }
)
TEXT = Question.model_validate(
    {"prompt": "Why?", "choices": [{"text": "so", "right": True, "why": "yes"}, {"text": "not so", "why": "no"}]}
)


@pytest.fixture
def quiz(run):
    return Quiz([TEXT, STEPS], {"run": run})


def test_numbers_are_computed_sorted_and_never_twice(run):
    # 3 steps: a tenth and a fifth both round to 1, which is one choice; twice is 6.
    item = item_of(STEPS, {"run": run})
    assert [(one.text, one.right) for one in item.choices] == [("1", False), ("3", True), ("6", False)]
    assert item.choices[0].why == "3 it is."


def letter(quiz, place, text):
    return "abcde"[[choice.text for choice in quiz.items[place - 1].choices].index(text)]


def test_no_share_is_more_than_all():
    asked = Question.model_validate(
        {"prompt": "?", "number": {"right": "recomputed_percent", "of": ["run"]}, "unit": "%", "times": [0.5, 2.2],
         "why": "."}
    )  # fmt: skip
    thrash = Workbench.open("data/runs/thrash-chunked")  # 2,629 of 4,509 tokens: 58.3 %
    assert [one.text for one in item_of(asked, {"run": thrash}).choices] == ["29.2 %", "58.3 %", "79.2 %"]


def test_an_answer_is_explained_and_the_first_counts(quiz):
    assert str(quiz.answer(1, letter(quiz, 1, "not so").upper())) == "✘ not so: no"
    assert str(quiz.answer(1, letter(quiz, 1, "so"))) == "✔ so: yes"
    assert str(quiz.answer(2, "b")) == "✔ 3: 3 it is."
    assert quiz.score == "1 of 2 right, 2 answered"
    assert str(quiz.answer("2", "b")) == "✔ 3: 3 it is.", "a place that was typed as a text"


@pytest.mark.parametrize(
    ("place", "letter"), [(0, "a"), (3, "a"), ("x", "a"), (None, "a"), (1, "c"), (1, ""), (1, "ab")]
)
def test_bad_input_is_one_line_and_does_not_count(quiz, place, letter):
    said = quiz.answer(place, letter)
    assert said.state == "open"
    assert "expected" in said.said
    assert quiz.given == {}


def test_the_right_choice_is_anywhere():
    quizzes = [Quiz(content(f"0{n}").quiz, {}) for n in range(9)]
    places = Counter(
        [choice.right for choice in item.choices].index(True) for quiz in quizzes for item in quiz.items if item.choices
    )
    assert sum(places.values()) == 27  # of 37 questions the other ten are numbers of runs
    assert max(places.values()) < 18  # by chance about half of those with two or three choices


def test_a_number_that_was_not_measured_is_not_asked(sized):
    quiz = Quiz([TEXT, STEPS], {"run": sized})
    assert quiz.items[1].choices == ()
    assert quiz.score == "0 of 1 right, 0 answered"
    assert "not asked: run: got 'no prefill on record'" in quiz.text


def test_a_page_without_scripts_has_all_of_it_as_text(quiz):
    html = quiz._repr_html_()
    assert ") so\n" in html
    assert "quiz.answer(1, &#x27;b&#x27;)" in html
    assert "<script" not in html
