"""An exercise: a prompt, a check against what was played, hints one after another, and the solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from workbench.errors import WorkbenchError
from workbench.i18n import phrase, told_error, translate
from workbench.learn import content
from workbench.learn.checks import OPEN, Checked, as_number, check_limit, check_number, check_pick, check_run, is_open
from workbench.learn.compare import number
from workbench.learn.predict import pick
from workbench.learn.rights import Right, right
from workbench.learn.shown import Shown


class Exercise(Shown):
    """One exercise of a lesson.

    The right answer is computed from the run at the first check, so that showing the prompt costs nothing.

    Args:
        place: its number in the lesson, from 1.
        asked: its content.
        subjects: what was played, by the names that the content uses.
    """

    def __init__(self, place: int, asked: content.Exercise, subjects: Mapping[str, Any]) -> None:
        self.place, self.asked = place, asked
        self.last = OPEN
        self.hints_told = 0
        self.solved = False  # the solution was looked at
        self._subjects = dict(subjects)
        self._right: Right | None = None
        self.on_change: list[Callable[[], object]] = []

    def hand_over(self, subjects: Mapping[str, Any]) -> None:
        """Take what was played anew; the right answer is computed again."""
        if subjects and any(self._subjects.get(name) is not one for name, one in subjects.items()):
            self._subjects |= subjects
            self._right = None

    @property
    def true(self) -> Right:
        """The right answer.

        Raises:
            InputError: what it is computed from was not handed over, or does not have it.
        """
        if self._right is None:
            asked = self.asked
            self._right = right(asked.right, *pick(self._subjects, asked.of), **asked.options)
        return self._right

    @property
    def among(self) -> tuple[str, ...]:
        """What there is to choose from; empty where a number or a run is asked for."""
        return tuple(self.true.among) if self.asked.kind == "pick" else ()

    @property
    def text(self) -> str:
        """Prompt, state, and what was told so far."""
        lines = [
            translate("Exercise {place}: {title}", place=self.place, title=self.asked.title),
            self.asked.prompt,
            str(self.last),
        ]
        lines += [
            translate("Hint {place}: {hint}", place=place, hint=hint)
            for place, hint in enumerate(self.asked.hints[: self.hints_told], 1)
        ]
        if self.solved:
            lines.append(translate("Solution: {text}", text=self.solution_text))
        elif self.last.state != "right":
            lines.append(
                translate(
                    "ex{place}.check(...) checks, ex{place}.hint() helps, ex{place}.solution() tells", place=self.place
                )
            )
        return "\n".join(lines)

    def check(self, answer: Any = ...) -> Checked:
        """Check an answer; ``...`` and ``None`` are none. Never raises: what cannot be read is said in one line."""
        self.last = self._checked(answer)
        self._changed()
        return self.last

    def __call__(self, answer: Any = ...) -> Exercise:
        """Check an answer, and be shown with what became of it."""
        self.check(answer)
        return self

    def hint(self) -> str:
        """The next hint; the last one again when there are no more."""
        hints = self.asked.hints
        self.hints_told = min(self.hints_told + 1, len(hints))
        self._changed()
        more = len(hints) - self.hints_told
        told = translate("Hint {place}: {hint}", place=self.hints_told, hint=hints[self.hints_told - 1])
        return told + ("" if more else translate(" (the last hint)"))

    def solution(self) -> str:
        """The solution, with the numbers of what was played."""
        self.solved = True
        self._changed()
        return self.solution_text

    @property
    def solution_text(self) -> str:
        """The same without being told that somebody looked."""
        value = because = ""
        if self.asked.kind != "run":
            try:
                true = self.true
            except WorkbenchError as error:
                return told_error(error)
            value = true.value if isinstance(true.value, str) else number(true.value, self.asked.unit)
            because = true.because
        return self.asked.solution.replace("{value}", value).replace("{because}", because).strip()

    def _checked(self, answer: Any) -> Checked:
        asked, what = self.asked, phrase("exercise {place}", place=self.place)
        if is_open(answer):
            return OPEN
        try:
            if asked.kind == "run":
                (against,) = pick(self._subjects, asked.of)
                return check_run(answer, against, asked.conditions, what)
            if asked.kind == "pick":
                return check_pick(answer, self.true, what)
            given = as_number(answer, what)
            if asked.kind == "limit":
                return check_limit(given, self.true, asked.unit, asked.cost_unit)
            return check_number(given, self.true, asked.tolerance, asked.unit)
        except WorkbenchError as error:
            return Checked("wrong", told_error(error))

    def _changed(self) -> None:
        for told in self.on_change:
            told()
