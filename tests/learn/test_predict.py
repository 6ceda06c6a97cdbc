"""A guess, and its reveal."""

import math

import pytest

from workbench.errors import InputError
from workbench.learn.content import Predict
from workbench.learn.predict import Prediction

ASKED = Predict.model_validate(
    {
        "prompt": "Guess.",
        "draw": {
            "curve": "longest_gap", "of": "run", "label": "gap", "unit": "ms", "seconds": 4, "columns": 8, "low": 10,
            "high": 10000, "log": True, "guess": [100],
        },
        "numbers": [
            {"label": "longest gap", "unit": "ms", "right": "gap_max_ms", "of": ["run"], "guess": 300},
            {"label": "peak", "unit": "MiB", "right": "frozen_streams", "of": ["run"], "guess": 1},
        ],
    }
)  # fmt: skip


@pytest.fixture
def guess():
    return Prediction(ASKED)


def test_without_a_person_the_stand_in_is_held_against_the_run_and_says_so(guess, run):
    revealed = guess.reveal(run=run)
    assert revealed.sentences[0] == (
        "longest gap: the stand-in (nobody guessed) expected 300 ms; it was 2,000 ms: 6.7 times more."
    )
    assert revealed.guess == (100,) * 8
    assert revealed.origin == "live CPU, made"
    assert repr(revealed).endswith("[live CPU, made]")


def test_a_guess_of_ones_own(guess, run):
    guess.draw([10, 10, 2000, 2000, 2000, 2000, 2000, 10]).say(1, 1000)
    revealed = guess.reveal(run=run)
    assert revealed.sentences[0] == "longest gap: you expected 1,000 ms; it was 2,000 ms: 2 times more."
    assert revealed.sentences[-1] == (
        "gap: the peak was 2,000 ms at 1 s; you drew the peak at 1 s, 2,000 ms. "
        "Half of the columns are off by a factor of 1.0 or less."
    )
    assert revealed.table.loc["longest gap", "ratio"] == pytest.approx(2)


def test_what_was_not_measured_is_said_and_nothing_breaks(guess, run):
    # No knobs on record, so there is no long prompt to judge by.
    revealed = guess.reveal(run=run)
    assert math.isnan(revealed.numbers[1].measured)
    assert revealed.sentences[1].endswith("it was not measured.")


def test_a_guess_is_kept_within_the_axis(guess):
    assert guess.draw([1e9]).drawn == [10000.0] * 8
    assert guess.draw([0]).drawn == [10.0] * 8
    assert guess.draw(300).drawn == guess.draw("300").drawn == [300.0] * 8
    assert guess.say("2", "1,000").numbers["peak"] == 1000


@pytest.mark.parametrize(
    ("what", "words"),
    [
        (lambda guess: guess.draw([1, 2]), "guess: got '2 values', expected 1 or 8"),
        (lambda guess: guess.draw(["x"]), "guess: got 'x', expected a number"),
        (lambda guess: guess.say(3, 1), "guess: got '3', expected 1 to 2"),
        (lambda guess: guess.say("first", 1), "guess: got 'first', expected 1 to 2"),
        (lambda guess: guess.say(1.5, 1), "guess: got '1.5', expected 1 to 2"),
        (lambda guess: guess.draw("much"), "guess: got 'much', expected a number"),
        (lambda guess: guess.say(1, "nan"), "expected a number"),
        (lambda guess: guess.reveal(), "lesson: got 'nothing', expected run; hand over run=run"),
    ],
)
def test_bad_input_is_one_line(guess, what, words):
    with pytest.raises(InputError) as error:
        what(guess)
    assert words in str(error.value)


def test_the_reveal_is_a_drawing_with_its_origin_and_the_sentences(guess, run):
    html = guess.reveal(run=run)._repr_html_()
    assert html.count("<svg") == 1
    assert "live CPU, made" in html
    assert "6.7 times more" in html
    assert "<script" not in html
