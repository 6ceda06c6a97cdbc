"""Checks, hints and solutions."""

import pytest

from workbench.errors import InputError
from workbench.learn import content
from workbench.learn.checks import check_limit, check_number, check_pick, check_run
from workbench.learn.content import Condition
from workbench.learn.exercise import Exercise
from workbench.learn.rights import Right
from workbench.workload.setting import Setting


@pytest.fixture
def steps(run):
    """Three steps are right."""
    asked = content.Exercise(
        title="count",
        prompt="How many?",
        kind="number",
        unit="steps",
        right="prefill_steps",
        of=("run",),
        hints=("look", "look again"),
        solution="{value}. {because}",
    )
    return Exercise(1, asked, {"run": run})


@pytest.mark.parametrize("answer", [..., None, "", "  "])
def test_a_placeholder_is_not_answered(steps, answer):
    assert str(steps.check(answer)) == "○ not answered yet"


def test_an_answer_is_checked_against_the_run(steps):
    assert str(steps.check(3)).startswith("✔ 3 steps. 1,200 prompt tokens")
    assert str(steps.check("30")) == "✘ 30 steps is too much by 27 steps: the run has 10 times less"
    assert str(steps.check(2)) == "✘ 2 steps is too little by 1 step: the run has 50 % more"


@pytest.mark.parametrize("answer", ["many", [3], True, float("nan")])
def test_bad_input_is_one_line_and_no_exception(steps, answer):
    said = steps.check(answer)
    assert said.state == "wrong"
    assert said.said.startswith("exercise 1: got ")
    assert "\n" not in said.said


def test_what_was_not_handed_over_is_one_line(steps):
    lonely = Exercise(1, steps.asked, {})
    assert lonely.check(...).state == "open"  # showing the prompt needs no run
    assert lonely.check(3).said == "lesson: got 'nothing', expected run; hand over run=run"


def test_hints_come_one_after_another(steps):
    assert "Hint" not in steps.text
    assert steps.hint() == "Hint 1: look"
    assert steps.hint() == "Hint 2: look again (the last hint)"
    assert steps.hint() == "Hint 2: look again (the last hint)"
    assert "Hint 1: look\nHint 2: look again" in steps.text


def test_the_solution_has_the_numbers_of_the_run(steps):
    assert steps.solution() == "3 steps. 1,200 prompt tokens were computed, 500 in the largest of the steps."
    assert steps.solved


def test_a_run_that_is_handed_over_anew_is_what_counts(steps, sized, run):
    steps.check(3)
    steps.hand_over({"run": sized})
    assert "no prefill on record" in steps.check(3).said
    steps.hand_over({"run": run})
    assert steps.check(3).state == "right"


LIMIT = Right(512, "Because.", lambda tokens: tokens / 102.4, 5.0)


@pytest.mark.parametrize(
    ("answer", "state", "words"),
    [
        (1024, "wrong", "1,024 tokens would cost 10 MiB, 5 MiB over the 5 MiB allowed"),
        (513, "wrong", "over the 5 MiB allowed"),
        (200, "wrong", "you could go 2.6 times as far"),  # 512 / 200
        (256, "right", "up to 512 tokens is allowed. Because."),
        (512, "right", "would cost 5 MiB"),
        (-1, "wrong", "more than 0"),
    ],
)
def test_a_limit_is_neither_passed_nor_given_away(answer, state, words):
    checked = check_limit(answer, LIMIT, "tokens", "MiB")
    assert checked.state == state
    assert words in checked.said


def test_a_setting_stands_for_its_budget(steps):
    assert steps.check(Setting(name="mine", budget=3)).state == "right"
    assert steps.check({"budget": 4}).state == "wrong"


def test_a_tolerance_is_a_share_of_the_right_value():
    assert check_number(110, Right(100), 0.1, "ms").state == "right"
    assert check_number(111, Right(100), 0.1, "ms").state == "wrong"


def test_a_pick_says_how_far_off_it_is_and_not_which_is_right():
    true = Right("b", "a 3 s, b 1 s.", among={"a": 3.0, "b": 1.0}, unit="s")
    assert check_pick("a", true, "exercise 1").said == "a has 3 s; the one asked for has 3 times less"
    assert check_pick(" b ", true, "exercise 1").state == "right"
    with pytest.raises(InputError, match="expected one of a, b"):
        check_pick("c", true, "exercise 1")


def test_a_run_is_held_against_the_notebooks(run, sized):
    gap = Condition(right="gap_max_ms", words="longest gap", unit="ms", at_most=0.5)
    assert check_run(run, run, [gap], "exercise 2").said == "longest gap 2,000 ms is 1,000 ms over the 1,000 ms allowed"
    assert check_run(run, run, [Condition(right="gap_max_ms", words="gap", at_most=1)], "exercise 2").state == "right"
    with pytest.raises(InputError, match="exercise 2: got 'int', expected a run"):
        check_run(7, run, [gap], "exercise 2")
