"""Predict, then reveal: a guess at the main run, and the difference once it was played."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import pandas as pd

from workbench.claims.verdict import origins
from workbench.errors import InputError
from workbench.i18n import marked, phrase, phrases, translate
from workbench.learn.compare import Compared, drawn_words, number
from workbench.learn.content import Draw, Predict
from workbench.learn.curves import over_time
from workbench.learn.places import place_of
from workbench.learn.rights import right
from workbench.learn.shown import Shown


class Prediction(Shown):
    """A guess: a drawn trace and some numbers, until :meth:`reveal`.

    Where nobody guesses, such as when a notebook runs headless, the guess of the lesson's file stands in, and the
    reveal says so.

    Args:
        asked: what is to be guessed.
    """

    def __init__(self, asked: Predict) -> None:
        self.asked = asked
        self.drawn = list(asked.draw.stand_in)
        self.numbers = {one.label: one.guess for one in asked.numbers}
        self.guessed = False
        self.revealed: Reveal | None = None
        self.on_reveal: list[Callable[[], object]] = []

    @property
    def text(self) -> str:
        """The question, the guess that stands, and how to change it from code."""
        draw = self.asked.draw
        lines = [
            self.asked.prompt,
            "",
            translate(
                "Draw {label} ({unit}), {count} columns: guess.draw([...])",
                label=draw.label,
                unit=draw.unit,
                count=draw.count,
            ),
        ]
        units = {one.label: one.unit for one in self.asked.numbers}
        for place, (label, value) in enumerate(self.numbers.items(), 1):
            lines.append(f"{place}. {label}: {number(value, units[label])}  –  guess.say({place}, {value:g})")
        lines.append(
            translate("(your guess)") if self.guessed else translate("(a guess that stands in until you make yours)")
        )
        return "\n".join(lines)

    def draw(self, values: Sequence[float | str] | float | str) -> Prediction:
        """Draw the trace: one value a column; one alone, also without a list around it, is a flat line.

        Raises:
            InputError: there are too many or too few, or one is no number.
        """
        values = [values] if isinstance(values, str | int | float) else list(values)
        asked, count = self.asked.draw, len(values)
        if count not in (1, asked.count):
            raise InputError("guess", f"{count} values", f"1 or {asked.count}", "give one for each column")
        found = [_finite(value) for value in values]
        self.drawn = [
            min(max(value, asked.low), asked.high) for value in (found * asked.count if count == 1 else found)
        ]
        self.guessed = True
        return self

    def say(self, place: int, value: float | str) -> Prediction:
        """Guess a number, by its place in the list from 1.

        Raises:
            InputError: there is no such place, or it is no number.
        """
        labels = list(self.numbers)
        self.numbers[labels[place_of(phrase("guess"), place, len(labels)) - 1]] = _finite(value)
        self.guessed = True
        return self

    def reveal(self, **subjects: Any) -> Reveal:
        """Hold the guess against what was measured.

        Args:
            **subjects: what was played, by the names that the lesson's file uses.

        Raises:
            InputError: one is missing.
        """
        compared = tuple(
            Compared(
                one.label, one.unit, self.numbers[one.label], _known(one.right, *pick(subjects, one.of), **one.options)
            )
            for one in self.asked.numbers
        )
        draw = self.asked.draw
        (subject,) = pick(subjects, (draw.of,))
        measured = measured_columns(draw, subject)
        width = (draw.seconds or 0.0) / draw.columns
        places = list(draw.names) or [f"{width * at:.3g} s" for at in range(len(measured))]
        self.revealed = Reveal(
            draw, tuple(self.drawn), measured, tuple(places), compared, self.guessed, origin(subjects)
        )
        for told in self.on_reveal:
            told()
        return self.revealed


@dataclass(frozen=True, repr=False)
class Reveal:
    """A guess beside what was measured.

    Attributes:
        draw: what was drawn.
        guess: a value a column.
        measured: likewise, NaN where nothing was measured; longer where the run went on.
        places: name of each column of ``measured``.
        numbers: the numbers that were guessed.
        guessed: whether a person did; else a stand-in.
        origin: where the measured comes from: live, recorded or simulated.
    """

    draw: Draw
    guess: tuple[float, ...]
    measured: tuple[float, ...]
    places: tuple[str, ...]
    numbers: tuple[Compared, ...]
    guessed: bool
    origin: str

    @property
    def who(self) -> str:
        """Whose guess it is, in a sentence."""
        return marked("you") if self.guessed else marked("the stand-in (nobody guessed)")

    @property
    def sentences(self) -> list[str]:
        """One for each number, and one for the trace."""
        draw = self.draw
        said = drawn_words(self.guess, self.measured, self.places, draw.unit, self.who)
        drawn = f"{draw.label}{translate(': ')}{said}"
        return [one.words(self.who) for one in self.numbers] + [drawn]

    @property
    def table(self) -> pd.DataFrame:
        """The numbers: expected, measured, and how many times that is."""
        rows = [
            {"figure": one.label, "unit": one.unit, "expected": one.guess, "measured": one.measured, "ratio": one.ratio}
            for one in self.numbers
        ]
        return pd.DataFrame(rows).set_index("figure")

    @property
    def rows(self) -> pd.DataFrame:
        """The trace, one row a column: ``place``, ``begin`` and ``end`` (s, or numbers), ``guess``, ``measured``."""
        width = (self.draw.seconds or self.draw.count) / self.draw.count
        guess = [*self.guess, *[math.nan] * (len(self.measured) - len(self.guess))]
        return pd.DataFrame(
            {
                "place": self.places,
                "begin": [at * width for at in range(len(self.places))],
                "end": [(at + 1) * width for at in range(len(self.places))],
                "guess": guess,
                "measured": self.measured,
            }
        )

    def __repr__(self) -> str:
        return "\n".join([*self.sentences, f"[{translate(self.origin)}]"])

    def _repr_html_(self) -> str:
        from workbench.ui.charts import guess_chart  # here, since Altair takes two seconds to import
        from workbench.ui.static import PAGE_LOOK, show

        draw = self.draw
        chart = guess_chart(
            self.rows,
            translate(self.origin),
            PAGE_LOOK,
            label=draw.label,
            unit=draw.unit,
            named=bool(draw.names),
            span=(draw.low, draw.high),
            log=draw.log,
        )
        drawing = show(chart)._repr_html_()
        said = "".join(f"<li>{escape(one)}</li>" for one in self.sentences)
        return f"<div>{drawing}<ul>{said}</ul><small>[{escape(translate(self.origin))}]</small></div>"


def pick(subjects: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """The objects of these names.

    Raises:
        InputError: one is missing.
    """
    missing = [name for name in names if name not in subjects]
    if missing:
        given = ", ".join(subjects) or "nothing"
        raise InputError("lesson", given, ", ".join(names), f"hand over {missing[0]}={missing[0]}")
    return [subjects[name] for name in names]


def measured_columns(draw: Draw, subject: Any) -> tuple[float, ...]:
    """What was measured, a value a column; NaN where nothing was."""
    if draw.seconds:
        return tuple(map(float, over_time(draw.curve, subject, draw.seconds, draw.columns)))
    return tuple(_known(draw.curve, subject[name]) if name in subject else math.nan for name in draw.names)


def origin(subjects: Mapping[str, Any]) -> str:
    """Where the numbers of what was handed over come from."""
    metas, labels = [], []
    for one in subjects.values():
        for subject in one.values() if isinstance(one, Mapping) else [one]:
            if hasattr(subject, "trace"):
                metas.append(subject.trace.meta)
            elif getattr(subject, "label", ""):
                labels.append(str(subject.label))
    return phrases(" and ", dict.fromkeys([*([origins(metas)] if metas else []), *labels])) or marked(
        "origin not stated"
    )


def _known(name: str, /, *subjects: Any, **options: Any) -> float:
    """A number; NaN where what was played does not have it, so that a notebook goes on."""
    try:
        return right(name, *subjects, **options).number
    except InputError:
        return math.nan


def _finite(value: object) -> float:
    try:
        found = float(str(value).replace(",", ""))
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise InputError(phrase("guess"), value, phrase("a number"), phrase("write one, such as 300"))
    return found
