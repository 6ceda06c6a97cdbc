"""What a study keeps beside its trials, so that going on with it plays nothing twice.

Its means (how much may be spent), that its search is over, what was played beyond the limits, and the confirmation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from workbench.tune.answer.confirm import Confirmation
from workbench.tune.search.study import Study
from workbench.tune.search.tuning import Allowance
from workbench.tune.trial import Result

# names of the notes
_MEANS, _OVER, _BEYOND, _CONFIRMED = "means", "search over", "beyond the limits", "confirmation"


class Kept:
    """The notes of one study.

    Args:
        study: whose they are.
    """

    def __init__(self, study: Study) -> None:
        self._study = study

    @property
    def means(self) -> dict[str, Any]:
        """Of the last session, see :attr:`workbench.tune.question.Question.means`; empty where none was kept."""
        return dict(self._study.noted(_MEANS) or {})

    @means.setter
    def means(self, means: dict[str, Any]) -> None:
        self._study.note(_MEANS, means)

    def over(self, allowance: Allowance) -> str:
        """Why the search has ended; empty where it has not, or this is another allowance than it ended with."""
        kept = self._study.noted(_OVER) or {}
        same = kept.get("allowance") == asdict(allowance) and kept.get("trials") == len(self._study.results)
        return str(kept["why"]) if same else ""

    def note_over(self, allowance: Allowance, why: str) -> None:
        """The search has ended by itself, or its minutes are over."""
        facts = {"why": why, "allowance": asdict(allowance), "trials": len(self._study.results)}
        self._study.note(_OVER, facts)

    def reopen(self) -> None:
        """Let the search go on, whatever it ended by."""
        self._study.note(_OVER, None)

    @property
    def beyond(self) -> list[Result]:
        """Plays beyond the limits, with numbers behind those of the search."""
        plays = [Result.of_dict(one) for one in self._study.noted(_BEYOND) or ()]
        first = max((one.number for one in self._study.results), default=-1) + 1
        return [replace(one, number=first + place) for place, one in enumerate(plays)]

    def note_beyond(self, plays: Sequence[Result]) -> None:
        """All of them so far."""
        self._study.note(_BEYOND, [one.as_dict() for one in plays])

    @property
    def confirmed(self) -> tuple[Result, ...]:
        """Plays of the confirmation, also of one that did not come to its end."""
        kept = self._study.noted(_CONFIRMED)
        return Confirmation.of_dict(kept, self._study.goal).results if kept else ()

    def note_confirmed(self, confirmation: Confirmation) -> None:
        """As far as it is."""
        self._study.note(_CONFIRMED, confirmation.as_dict())
