"""Exercises and quizzes as plain data for a page: no widgets in here."""

from __future__ import annotations

from typing import Any

from workbench.errors import WorkbenchError
from workbench.i18n import told_error, translate
from workbench.learn.exercise import Exercise
from workbench.learn.quiz import LETTERS, Quiz


def exercise_cards(exercise: Exercise) -> dict[str, Any]:
    """One card: a field for a number, choices for a pick, or neither where a run is asked for, which only code has."""
    asked, missing = exercise.asked, ""
    choices: list[str] = []
    try:
        choices = list(exercise.among)
    except WorkbenchError as error:
        missing = told_error(error)
    card = {
        "title": translate("Exercise {place}: {title}", place=exercise.place, title=asked.title),
        "prompt": asked.prompt,
        "kind": {"pick": "choices", "run": "code"}.get(asked.kind, "entry"),
        "unit": asked.unit,
        "choices": [{"value": name, "text": name} for name in choices],
        "chosen": None,
        "state": exercise.last.state,
        "said": missing or str(exercise.last),
        "hints": list(asked.hints[: exercise.hints_told]),
        "more": len(asked.hints) - exercise.hints_told,
        "solution": exercise.solution_text if exercise.solved else "",
        "helps": True,
    }
    return {"heading": "", "cards": [card], "score": ""}


def quiz_cards(quiz: Quiz) -> dict[str, Any]:
    """A card a question."""
    cards = []
    for place, item in enumerate(quiz.items):
        told = quiz.told(place) if place in quiz.given else None
        cards.append(
            {
                "title": f"{place + 1}. {item.prompt}",
                "prompt": "",
                "kind": "choices",
                "unit": "",
                "choices": [
                    {"value": LETTERS[at], "text": f"{LETTERS[at]}) {choice.text}"}
                    for at, choice in enumerate(item.choices)
                ],
                "chosen": LETTERS[quiz.given[place]] if place in quiz.given else None,
                "state": told.state if told is not None else "open",
                "said": str(told) if told is not None else item.missing,
                "hints": [],
                "more": 0,
                "solution": "",
                "helps": False,
            }
        )
    return {"heading": translate("Quiz"), "cards": cards, "score": quiz.score}
