"""A quiz: questions with choices, an explanation for each answer, and a score that stays in the notebook."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.errors import InputError, WorkbenchError
from workbench.i18n import phrase, told_error, translate
from workbench.learn.checks import Checked
from workbench.learn.compare import number
from workbench.learn.content import Choice, Question
from workbench.learn.places import place_of
from workbench.learn.predict import pick
from workbench.learn.rights import right
from workbench.learn.shown import Shown

LETTERS = "abcde"


@dataclass(frozen=True)
class Item:
    """A question as it is asked here.

    Attributes:
        prompt: the question.
        choices: in the order in which they are shown; none where the run did not measure it.
        missing: why there are none.
    """

    prompt: str
    choices: tuple[Choice, ...]
    missing: str = ""


def item_of(question: Question, subjects: Mapping[str, Any]) -> Item:
    """A question with its choices; those that are numbers are computed from what was played, and sorted.

    Written choices are in an order that has nothing to do with that of the file, where the right one mostly is first.
    Wrong choices are multiples of the right one. Two that read the same are one, and whole numbers stay whole.
    """
    if question.number is None:
        return Item(
            question.prompt, tuple(sorted(question.choices, key=lambda one: _shuffled(question.prompt + one.text)))
        )
    source = question.number
    try:
        true = right(source.right, *pick(subjects, source.of), **source.options)
    except WorkbenchError as error:
        return Item(question.prompt, (), told_error(error))
    value = true.number
    if math.isnan(value) or value == 0:
        return Item(question.prompt, (), translate("the run has no such number"))
    why = question.why.replace("{value}", number(value, question.unit)).replace("{because}", true.because).strip()
    whole = value.is_integer()
    shown = {number(value, question.unit): (value, True)}
    for times in question.times:
        wrong = float(max(1, round(value * times))) if whole else value * times
        if question.unit == "%" and value < 100 <= wrong:
            wrong = (value + 100) / 2  # more than all would give it away
        shown.setdefault(number(wrong, question.unit), (wrong, False))
    ordered = sorted(shown.items(), key=lambda one: one[1][0])
    return Item(question.prompt, tuple(Choice(text=text, right=yes, why=why) for text, (_, yes) in ordered))


def _shuffled(text: str) -> bytes:
    """A key that sorts texts by chance, and the same on every machine."""
    return hashlib.sha256(text.encode()).digest()


class Quiz(Shown):
    """The closing quiz of a lesson.

    Args:
        questions: what is asked.
        subjects: what was played, by the names that the questions use.
    """

    def __init__(self, questions: Sequence[Question], subjects: Mapping[str, Any]) -> None:
        self.items = tuple(item_of(question, subjects) for question in questions)
        self.given: dict[int, int] = {}  # question: choice, both from 0; the first answer counts
        self.on_change: list[Callable[[], object]] = []

    @property
    def score(self) -> str:
        """How many were right at the first answer, of those that can be answered."""
        right_ones = sum(self.items[place].choices[choice].right for place, choice in self.given.items())
        can = sum(bool(item.choices) for item in self.items)
        return translate("{right} of {can} right, {given} answered", right=right_ones, can=can, given=len(self.given))

    @property
    def text(self) -> str:
        """Questions, choices, what was answered, and how to answer from code."""
        lines = [translate("Quiz")]
        for place, item in enumerate(self.items):
            lines.append(f"{place + 1}. {item.prompt}")
            lines += [f"   {LETTERS[at]}) {choice.text}" for at, choice in enumerate(item.choices)]
            if item.missing:
                lines.append(translate("   (not asked: {why})", why=item.missing))
            elif place in self.given:
                lines.append(f"   {self.told(place)}")
        lines.append(translate("{score}. Answer with quiz.answer(1, 'b')", score=self.score))
        return "\n".join(lines)

    def told(self, place: int) -> Checked:
        """What is said to the answer that was given to a question, counted from 0."""
        choice = self.items[place].choices[self.given[place]]
        return Checked("right" if choice.right else "wrong", f"{choice.text}: {choice.why}")

    def answer(self, place: int, letter: str) -> Checked:
        """Answer a question; its first answer counts, a later one is explained all the same.

        Args:
            place: the question, from 1.
            letter: the choice: a, b, ...

        Returns:
            Whether it is right, and why; what cannot be read is said in one line.
        """
        try:
            return self._answered(place, letter)
        except InputError as error:
            return Checked("open", told_error(error))

    def _answered(self, place: int, letter: str) -> Checked:
        place = place_of(phrase("question"), place, len(self.items))
        item = self.items[place - 1]
        if not item.choices:
            raise InputError("question", place, "one that can be asked", item.missing)
        letters = LETTERS[: len(item.choices)]
        named = str(letter).strip().lower()
        if len(named) != 1 or named not in letters:
            raise InputError(
                phrase("answer to question {place}", place=place),
                letter,
                phrase("one of {names}", names=", ".join(letters)),
                phrase("choose one of these"),
            )
        at = letters.index(named)
        self.given.setdefault(place - 1, at)
        choice = item.choices[at]
        for told in self.on_change:
            told()
        return Checked("right" if choice.right else "wrong", f"{choice.text}: {choice.why}")
