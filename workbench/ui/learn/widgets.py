"""One widget a part: the page's half gets what is to be shown as plain data, and sends what a person did."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import anywidget
import traitlets

from workbench.errors import WorkbenchError
from workbench.i18n import told_error, translate
from workbench.learn.exercise import Exercise
from workbench.learn.predict import Prediction
from workbench.learn.quiz import Quiz
from workbench.learn.shown import Shown
from workbench.ui.learn.cards import exercise_cards, quiz_cards
from workbench.ui.live.busy import answer_while_busy


class PartWidget(anywidget.AnyWidget):
    """Draws what :meth:`now` gives, and hands what a person does to :meth:`take`, also while a cell runs."""

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)
    shown = traitlets.Dict().tag(sync=True)
    script = ""

    def __init__(self, part: Any) -> None:
        self.part = part
        super().__init__(shown=self.now())
        self.on_msg(self._heard)
        answer_while_busy(self)

    @traitlets.default("_esm")
    def _default_esm(self) -> str:
        own = _read("elements.js") + "\n" + _read(self.script)
        words = {message: translate(message) for message in re.findall(r'\btranslate\("([^"]+)"\)', own)}
        return f"const WORDS = {json.dumps(words)};\nconst translate = (message) => WORDS[message] ?? message;\n{own}"

    @traitlets.default("_css")
    def _default_css(self) -> str:
        return _read("learn.css")

    def now(self) -> dict[str, Any]:
        """What is to be shown."""
        raise NotImplementedError

    def take(self, message: Mapping[str, Any]) -> None:
        """Do what a person did."""
        raise NotImplementedError

    def publish(self) -> None:
        """Tell the page."""
        self.shown = self.now()

    def _heard(self, _: Any, message: Any, __: Any) -> None:
        if not isinstance(message, dict):
            return
        try:
            self.take(message)
            self.publish()
        except WorkbenchError as error:
            self.shown = self.now() | {"error": told_error(error)}


class PredictionWidget(PartWidget):
    """A guess to draw with the mouse or the arrow keys, and numbers to fill in."""

    script = "draw.js"

    def __init__(self, part: Prediction) -> None:
        super().__init__(part)
        part.on_reveal.append(self.publish)

    def now(self) -> dict[str, Any]:
        """The drawing's frame, the guess, and what was measured, once it was."""
        part: Prediction = self.part
        draw, revealed = part.asked.draw, part.revealed
        return {
            "prompt": part.asked.prompt,
            "draw": draw.model_dump(include={"label", "unit", "seconds", "low", "high", "log"})
            | {"names": list(draw.names)},
            "drawn": list(part.drawn),
            "numbers": [
                {"label": one.label, "unit": one.unit, "value": part.numbers[one.label]} for one in part.asked.numbers
            ],
            "guessed": part.guessed,
            "measured": [] if revealed is None else [_finite(value) for value in revealed.measured],
            "said": [] if revealed is None else revealed.sentences,
            "origin": "" if revealed is None else translate(revealed.origin),
        }

    def take(self, message: Mapping[str, Any]) -> None:
        """A drawn trace or a number; after the reveal it is too late."""
        part: Prediction = self.part
        if part.revealed is not None:
            return
        if message.get("kind") == "draw" and isinstance(message.get("values"), list):
            part.draw(message["values"])
        elif message.get("kind") == "say" and isinstance(message.get("place"), int):
            part.say(message["place"], str(message.get("value")))


class ExerciseWidget(PartWidget):
    """The prompt with a field, and buttons for check, hint and solution."""

    script = "ask.js"

    def __init__(self, part: Exercise) -> None:
        super().__init__(part)
        part.on_change.append(self.publish)

    def now(self) -> dict[str, Any]:
        """One card."""
        return exercise_cards(self.part)

    def take(self, message: Mapping[str, Any]) -> None:
        """An answer, or the wish for a hint or the solution."""
        part: Exercise = self.part
        kind = message.get("kind")
        if kind == "answer":
            part.check(message.get("value"))
        elif kind == "hint":
            part.hint()
        elif kind == "solution":
            part.solution()


class QuizWidget(PartWidget):
    """Questions with choices."""

    script = "ask.js"

    def __init__(self, part: Quiz) -> None:
        super().__init__(part)
        part.on_change.append(self.publish)

    def now(self) -> dict[str, Any]:
        """A card a question."""
        return quiz_cards(self.part)

    def take(self, message: Mapping[str, Any]) -> None:
        """An answer."""
        part: Quiz = self.part
        if message.get("kind") == "answer" and isinstance(message.get("card"), int):
            part.answer(message["card"] + 1, str(message.get("value")))


def widget_of(part: Shown) -> PartWidget:
    """The widget of a part, made at the first call."""
    if part.widget is None:
        kinds: dict[type[Shown], type[PartWidget]] = {
            Prediction: PredictionWidget,
            Exercise: ExerciseWidget,
            Quiz: QuizWidget,
        }
        part.widget = next(make for kind, make in kinds.items() if isinstance(part, kind))(part)
    made: PartWidget = part.widget
    return made


def _finite(value: float) -> float | None:
    """None for NaN, which JSON has no word for."""
    return value if math.isfinite(value) else None


@cache
def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
