"""Steps with what was in them, from the two tables that tell of them one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workbench.ui.live.chart_rows import number


@dataclass(frozen=True, slots=True)
class Part:
    """What one request had in a step."""

    request: str
    tokens: int
    context: int
    prefill: bool


@dataclass(frozen=True, slots=True)
class Step:
    """A step that has ended; ``start_s`` is where it was scheduled when the worker's start is not known.

    ``row`` is its row of the trace, for the columns that a chart may need.
    """

    step: int
    start_s: float
    end_s: float
    prefill_tokens: int
    decode_tokens: int
    parts: Sequence[Part]
    row: Mapping[str, Any]

    @property
    def ms(self) -> float:
        """How long it took."""
        return (self.end_s - self.start_s) * 1000

    @property
    def tokens(self) -> int:
        """All tokens in it."""
        return self.prefill_tokens + self.decode_tokens


class StepsIn:
    """Joins ``steps`` and ``batch`` rows.

    A step's row comes before the rows of its parts; one whose parts are not in yet is held back, once.
    """

    def __init__(self) -> None:
        self._steps: dict[int, Mapping[str, Any]] = {}
        self._parts: dict[int, list[Part]] = {}
        self._held: int | None = None

    def take_steps(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take rows of the ``steps`` table."""
        self._steps.update((row["step"], row) for row in rows)

    def take_batch(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take rows of the ``batch`` table."""
        for row in rows:
            part = Part(row["request"], row["tokens"] or 0, row.get("context") or 0, bool(row["prefill"]))
            self._parts.setdefault(row["step"], []).append(part)

    def ready(self) -> list[Step]:
        """The steps that are complete, in order; each once."""
        done: list[Step] = []
        newest = max(self._parts, default=-1)
        for key in list(self._steps):
            row = self._steps[key]
            prefill = row.get("prefill_tokens") or 0
            if prefill and key > newest and key != self._held:
                self._held = key
                break
            del self._steps[key]
            parts = self._parts.pop(key, ())
            start, end = number(row, "start_s", "scheduled_s"), number(row, "end_s")
            if start is not None and end is not None:
                done.append(Step(key, start, end, prefill, row.get("decode_tokens") or 0, parts, row))
        for key in [key for key in self._parts if not self._steps or key < min(self._steps)]:
            del self._parts[key]  # of steps that came without a row, or were not waited for
        return done
