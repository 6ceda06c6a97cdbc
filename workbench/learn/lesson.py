"""One notebook's prediction, exercises and quiz: what the notebook's cells call."""

from __future__ import annotations

from typing import Any, Self

from workbench.i18n import phrase
from workbench.learn.content import Content, content
from workbench.learn.exercise import Exercise
from workbench.learn.places import place_of
from workbench.learn.predict import Prediction
from workbench.learn.quiz import Quiz


class Lesson:
    """The learning parts of one notebook.

    Args:
        asked: its content.
    """

    def __init__(self, asked: Content) -> None:
        self.asked = asked
        self._exercises: dict[int, Exercise] = {}

    @classmethod
    def of(cls, name: str) -> Self:
        """The lesson of a notebook, by the beginning of its name, such as ``01``.

        Raises:
            ScenarioError: there is none, or its file is damaged.
        """
        return cls(content(name))

    def __repr__(self) -> str:
        return (
            f"<lesson {self.asked.notebook}: {len(self.asked.exercises)} exercises, {len(self.asked.quiz)} questions>"
        )

    def predict(self) -> Prediction:
        """A new guess at the main run, to be shown before it is played."""
        return Prediction(self.asked.predict)

    def exercise(self, place: int, **subjects: Any) -> Exercise:
        """An exercise by its number from 1; called again, the same one, with the hints that were told.

        Args:
            place: its number.
            **subjects: what was played, by the names that the lesson's file uses.

        Raises:
            InputError: there is no such exercise.
        """
        place = place_of(phrase("exercise"), place, len(self.asked.exercises))
        if place not in self._exercises:
            self._exercises[place] = Exercise(place, self.asked.exercises[place - 1], subjects)
        self._exercises[place].hand_over(subjects)
        return self._exercises[place]

    def quiz(self, **subjects: Any) -> Quiz:
        """The closing quiz, unanswered.

        Args:
            **subjects: what was played, by the names that the lesson's file uses.
        """
        return Quiz(self.asked.quiz, subjects)
