"""What a lesson's file holds (``data/workshop/*.yaml``): texts, and the names of the right answers."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from workbench.config import Frozen, parse
from workbench.errors import InputError, ScenarioError
from workbench.i18n import spoken
from workbench.workload.strict_yaml import load_yaml

Kind = Literal["number", "limit", "pick", "run"]


class Source(Frozen):
    """Where a right answer comes from: a name of :mod:`workbench.learn.rights`, and what it is computed from."""

    right: str = Field(min_length=1)
    of: tuple[str, ...] = Field((), description="Names of the objects that the notebook hands over.")
    options: dict[str, Any] = Field(default_factory=dict, alias="with")


class Number(Source):
    """A number to predict."""

    label: str
    unit: str = ""
    guess: float = Field(description="What stands in where nobody guessed.")


class Draw(Frozen):
    """A trace to predict: one value a column."""

    curve: str = Field(description="A name of :mod:`workbench.learn.curves`, or of a right answer over several runs.")
    of: str = Field(description="Name of the object that the notebook hands over.")
    label: str
    unit: str
    seconds: float | None = Field(None, gt=0, description="Width of the time axis; none: the columns have names.")
    columns: int = Field(24, ge=2, le=60)
    names: tuple[str, ...] = ()
    low: float = 0.0
    high: float
    log: bool = False
    guess: tuple[float, ...] = Field(description="Stands in where nobody guessed; one value is a flat line.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if bool(self.names) == bool(self.seconds):
            raise InputError("draw", "both or neither", "seconds or names", "give one of them")
        if len(self.guess) not in (1, self.count):
            raise InputError("guess", f"{len(self.guess)} values", f"1 or {self.count}", "correct it")
        if self.log and self.low <= 0:
            raise InputError("low", self.low, "more than 0 on a logarithmic axis", "correct it")
        return self

    @property
    def count(self) -> int:
        """How many columns there are."""
        return len(self.names) or self.columns

    @property
    def stand_in(self) -> tuple[float, ...]:
        """One value a column."""
        return self.guess * self.count if len(self.guess) == 1 else self.guess


class Predict(Frozen):
    """What is to be guessed before the main run."""

    prompt: str
    draw: Draw
    numbers: tuple[Number, ...] = Field(min_length=1, max_length=4)


class Condition(Frozen):
    """What a learner's own run must do against the notebook's: its figure is at most so many times that one's."""

    right: str
    words: str
    unit: str = ""
    at_most: float = Field(gt=0, description="Times the figure of the notebook's run.")


class Exercise(Source):
    """One exercise."""

    right: str = ""
    title: str
    prompt: str
    kind: Kind
    unit: str = ""
    tolerance: float = Field(0.0, ge=0, lt=1, description="Share by which a number may be off.")
    cost_unit: str = ""
    conditions: tuple[Condition, ...] = ()
    hints: tuple[str, ...] = Field(min_length=1)
    solution: str = Field(description="{value} and {because} are filled in.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if (self.kind == "run") != bool(self.conditions) or (self.kind == "run") == bool(self.right):
            raise InputError("kind", self.kind, "conditions for a run, right for the others", "correct it")
        return self


class Choice(Frozen):
    """One choice of a question, with what is said to it."""

    text: str
    right: bool = False
    why: str


class Question(Frozen):
    """A question: with choices as written, or with a number of a run among multiples of it."""

    prompt: str
    choices: tuple[Choice, ...] = Field((), max_length=5)
    number: Source | None = None
    unit: str = ""
    times: tuple[float, ...] = Field((0.1, 0.4, 3.0), description="The wrong choices, as multiples of the right one.")
    why: str = Field("", description="Said to a number's choices; {value} and {because} are filled in.")

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if bool(self.choices) == bool(self.number):
            raise InputError("question", self.prompt, "choices or a number", "give one of them")
        if self.choices and sum(one.right for one in self.choices) != 1:
            raise InputError("question", self.prompt, "one right choice", "mark one")
        if self.number and (1.0 in self.times or not self.why):
            raise InputError("question", self.prompt, "a why, and wrong choices only among times", "correct it")
        return self


class Content(Frozen):
    """One file."""

    notebook: str
    predict: Predict
    exercises: tuple[Exercise, ...] = Field(min_length=2)
    quiz: tuple[Question, ...] = Field(min_length=3, max_length=5)


def folder() -> Path:
    """``data/workshop`` of the checkout that this package lies in."""
    return Path(__file__).resolve().parents[2] / "data" / "workshop"


def content(name: str) -> Content:
    """The content of a notebook, by the beginning of its name, such as ``01``, in the language that is spoken.

    Raises:
        ScenarioError: there is none, or its file is damaged.
    """
    return _content(name, spoken())


@cache
def _content(name: str, language: str) -> Content:
    """Its texts are those of a file of the same name in the language's folder, where there is one."""
    names = sorted(file.stem for file in folder().glob("*.yaml"))
    found = [one for one in names if name and one.startswith(name)]
    if len(found) != 1:
        raise ScenarioError("lesson", name, f"one of {', '.join(names) or 'none here'}", "name one of them")
    file = folder() / f"{found[0]}.yaml"
    plain, texts = load_yaml(file), folder() / language / file.name
    if texts.is_file():
        plain = _told(plain, load_yaml(texts), texts.name)
    return parse(Content, plain, where=file.name, error=ScenarioError)


def _told(plain: Any, texts: Any, where: str) -> Any:
    """The English content with texts put in the places of its own; a list has one for each of its parts.

    Raises:
        ScenarioError: there is no such place.
    """
    if isinstance(plain, dict) and isinstance(texts, dict) and texts.keys() <= plain.keys():
        return plain | {key: _told(plain[key], text, f"{where}: {key}") for key, text in texts.items()}
    if isinstance(plain, list) and isinstance(texts, list) and len(plain) == len(texts):
        return [_told(one, text, where) for one, text in zip(plain, texts, strict=True)]
    if isinstance(plain, str) and isinstance(texts, str):
        return texts
    raise ScenarioError(where, texts, f"texts in the places of {plain!r:.60}", "correct it")
