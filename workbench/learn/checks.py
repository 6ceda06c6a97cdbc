"""An answer against the right one: right or not, what is wrong, and by how much."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from workbench.config import Knobs
from workbench.errors import InputError
from workbench.i18n import marked, phrase, translate
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
        return f"{SIGNS[self.state]} {translate(self.said)}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<div><strong>{escape(str(self))}</strong></div>"


OPEN = Checked("open", marked("not answered yet"))


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
        raise InputError(what, answer, phrase("a number"), phrase("write one, such as 12 or 0.5"))
    return value


def check_number(answer: float, true: Right, tolerance: float, unit: str) -> Checked:
    """A number that may be off by a share."""
    value = true.number
    if math.isnan(value):
        return Checked("wrong", translate("the run did not measure it: nothing to check against"))
    if abs(answer - value) <= tolerance * abs(value) + 1e-9:
        return Checked(
            "right", translate("{number}. {because}", number=number(value, unit), because=true.because).strip()
        )
    side = translate("too much") if answer > value else translate("too little")
    off = number(abs(answer - value), unit)
    return Checked(
        "wrong",
        translate(
            "{answer} is {side} by {off}: the run has {far}",
            answer=number(answer, unit),
            side=side,
            off=off,
            far=how_far(answer, value, unit),
        ),
    )


def check_limit(answer: float, true: Right, unit: str, cost_unit: str) -> Checked:
    """How far a knob may go: no further, and not less than half as far."""
    most = true.number
    if answer <= 0:
        return Checked("wrong", translate("{number} is no value for it: more than 0 is", number=number(answer, unit)))
    costs = true.cost(answer) if true.cost is not None else math.nan
    price = translate("{answer} would cost {cost}", answer=number(answer, unit), cost=number(costs, cost_unit))
    if answer > most:
        over = number(costs - true.allowed, cost_unit)
        return Checked(
            "wrong",
            translate(
                "{price}, {over} over the {allowed} allowed",
                price=price,
                over=over,
                allowed=number(true.allowed, cost_unit),
            ),
        )
    if answer < _ENOUGH * most:
        return Checked(
            "wrong",
            translate(
                "{price}: allowed, but you could go {times} times as far",
                price=price,
                times=number(round(most / answer, 1)),
            ),
        )
    return Checked(
        "right",
        translate(
            "{price}; up to {number} is allowed. {because}",
            price=price,
            number=number(most, unit),
            because=true.because,
        ).strip(),
    )


def check_pick(answer: object, true: Right, what: str) -> Checked:
    """One of several names.

    Raises:
        InputError: it is none of them.
    """
    named = str(answer).strip()
    if named not in true.among:
        raise InputError(
            what, answer, phrase("one of {names}", names=", ".join(true.among)), phrase("choose one of these")
        )
    if named == true.value:
        return Checked("right", translate("{named}. {because}", named=named, because=true.because).strip())
    mine, best = true.among[named], true.among[str(true.value)]
    return Checked(
        "wrong",
        translate(
            "{named} has {number}; the one asked for has {far}",
            named=named,
            number=number(mine, true.unit),
            far=how_far(mine, best, true.unit),
        ),
    )


def check_run(answer: Any, against: Any, conditions: Sequence[Condition], what: str) -> Checked:
    """A learner's own run against the notebook's.

    Raises:
        InputError: it is no run, or has not got the figures.
    """
    if not hasattr(answer, "trace"):
        raise InputError(what, type(answer).__name__, phrase("a run"), phrase("hand over what wb.run(...) gave"))
    if answer.trace.meta.get("status") == "running":
        raise InputError(
            what, phrase("a run that goes on"), phrase("one that has ended"), phrase("call run.wait() first")
        )
    good, bad = [], []
    for one in conditions:
        mine, allowed = right(one.right, answer).number, one.at_most * right(one.right, against).number
        said = translate("{words} {number}", words=one.words, number=number(mine, one.unit))
        if mine <= allowed:
            good.append(translate("{said} (allowed: {number})", said=said, number=number(allowed, one.unit)))
        else:
            over = (
                translate("not measured")
                if math.isnan(mine)
                else translate("{number} over", number=number(mine - allowed, one.unit))
            )
            bad.append(
                translate(
                    "{said} is {over} the {number} allowed", said=said, over=over, number=number(allowed, one.unit)
                )
            )
    return Checked("wrong", "; ".join(bad)) if bad else Checked("right", "; ".join(good))
