"""An answer against the right one: right or not, what is wrong, and by how much."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from workbench.config import Knobs
from workbench.errors import InputError
from workbench.learn.compare import how_far, number
from workbench.learn.content import Condition
from workbench.learn.rights import Right, right
from workbench.workload.setting import Setting

State = Literal["open", "wrong", "right"]
SIGNS: Mapping[State, str] = {"open": "○", "wrong": "✘", "right": "✔"}
_ENOUGH = 0.5  # of a limit: an answer that gives away more than half of it is too careful


@dataclass(frozen=True)
class Checked:
    """What became of an answer.

    Attributes:
        state: open (none was given), wrong or right.
        said: one line.
    """

    state: State
    said: str

    def __str__(self) -> str:
        return f"{SIGNS[self.state]} {self.said}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<div><strong>{escape(str(self))}</strong></div>"


OPEN = Checked("open", "not answered yet")


def is_open(answer: object) -> bool:
    """Whether a notebook's placeholder stands there still: ``...``, ``None`` or an empty text."""
    return answer is ... or answer is None or (isinstance(answer, str) and not answer.strip())


def as_number(answer: object, what: str, knob: str = "") -> float:
    """A number, text that is one, or that knob of a setting.

    Raises:
        InputError: it is none.
    """
    found = answer
    if isinstance(answer, Setting | Knobs):
        found = getattr(answer, knob or "budget", None)
    elif isinstance(answer, Mapping):
        found = answer.get(knob or "budget")
    try:
        value = float(str(found).replace(",", "").strip()) if not isinstance(found, bool) else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise InputError(what, answer, "a number", "write one, such as 12 or 0.5")
    return value


def check_number(answer: float, true: Right, tolerance: float, unit: str) -> Checked:
    """A number that may be off by a share."""
    value = true.number
    if math.isnan(value):
        return Checked("wrong", "the run did not measure it: nothing to check against")
    if abs(answer - value) <= tolerance * abs(value) + 1e-9:
        return Checked("right", f"{number(value, unit)}. {true.because}".strip())
    side = "too much" if answer > value else "too little"
    off = number(abs(answer - value), unit)
    return Checked("wrong", f"{number(answer, unit)} is {side} by {off}: the run has {how_far(answer, value, unit)}")


def check_limit(answer: float, true: Right, unit: str, cost_unit: str) -> Checked:
    """How far a knob may go: no further, and not less than half as far."""
    most = true.number
    if answer <= 0:
        return Checked("wrong", f"{number(answer, unit)} is no value for it: more than 0 is")
    costs = true.cost(answer) if true.cost is not None else math.nan
    price = f"{number(answer, unit)} would cost {number(costs, cost_unit)}"
    if answer > most:
        over = number(costs - true.allowed, cost_unit)
        return Checked("wrong", f"{price}, {over} over the {number(true.allowed, cost_unit)} allowed")
    if answer < _ENOUGH * most:
        return Checked("wrong", f"{price}: allowed, but you could go {number(round(most / answer, 1))} times as far")
    return Checked("right", f"{price}; up to {number(most, unit)} is allowed. {true.because}".strip())


def check_pick(answer: object, true: Right, what: str) -> Checked:
    """One of several names.

    Raises:
        InputError: it is none of them.
    """
    named = str(answer).strip()
    if named not in true.among:
        raise InputError(what, answer, f"one of {', '.join(true.among)}", "choose one of these")
    if named == true.value:
        return Checked("right", f"{named}. {true.because}".strip())
    mine, best = true.among[named], true.among[str(true.value)]
    return Checked(
        "wrong", f"{named} has {number(mine, true.unit)}; the one asked for has {how_far(mine, best, true.unit)}"
    )


def check_run(answer: Any, against: Any, conditions: Sequence[Condition], what: str) -> Checked:
    """A learner's own run against the notebook's.

    Raises:
        InputError: it is no run, or has not got the figures.
    """
    if not hasattr(answer, "trace"):
        raise InputError(what, type(answer).__name__, "a run", "hand over what wb.run(...) gave")
    if answer.trace.meta.get("status") == "running":
        raise InputError(what, "a run that goes on", "one that has ended", "call run.wait() first")
    good, bad = [], []
    for one in conditions:
        mine, allowed = right(one.right, answer).number, one.at_most * right(one.right, against).number
        said = f"{one.words} {number(mine, one.unit)}"
        if mine <= allowed:
            good.append(f"{said} (allowed: {number(allowed, one.unit)})")
        else:
            over = "not measured" if math.isnan(mine) else f"{number(mine - allowed, one.unit)} over"
            bad.append(f"{said} is {over} the {number(allowed, one.unit)} allowed")
    return Checked("wrong", "; ".join(bad)) if bad else Checked("right", "; ".join(good))
