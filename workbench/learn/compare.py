"""A guess against what was measured, in words: the ratio, and one sentence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from workbench.i18n import marked, translate

CLOSE = 0.10  # within 10 % a guess was right: plays of one setting on one machine differ by as much


def number(value: float, unit: str = "") -> str:
    """A figure as people write it, with three digits that count: "2,560 ms", "0.042 s"."""
    if math.isnan(value):
        return "n/a"
    whole = float(value).is_integer() or abs(value) >= 100
    shown = f"{value:,.0f}" if whole else f"{value:.3g}"
    if shown == "1" and len(unit) > 2 and unit.isalpha():  # "1 step", but "1 ms" and "1 tokens/s"
        unit = unit.removesuffix("s")
    return f"{shown} {unit}".strip()


@dataclass(frozen=True)
class Compared:
    """One number that was guessed, and what it was.

    Attributes:
        label: what it is.
        unit: of both.
        guess: what was expected.
        measured: what it was; NaN where it was not measured.
    """

    label: str
    unit: str
    guess: float
    measured: float

    @property
    def ratio(self) -> float:
        """Measured over expected; NaN where one of the two is not there or the expected is 0."""
        return self.measured / self.guess if self.guess else math.nan

    def words(self, who: str = "you") -> str:
        """One sentence: "longest gap: you expected 300 ms; it was 2,560 ms: 8.5 times more"."""
        what = {"label": self.label, "who": translate(who), "guess": number(self.guess, self.unit)}
        if math.isnan(self.measured):
            return translate("{label}: {who} expected {guess}; it was not measured.", **what)
        far = how_far(self.guess, self.measured, self.unit)
        measured = number(self.measured, self.unit)
        return translate(
            "{label}: {who} expected {guess}; it was {measured}: {far}.", **what, measured=measured, far=far
        )


def how_far(guess: float, measured: float, unit: str = "") -> str:
    """How far the measured is from the guess: "8.5 times more", "40 % less", "close (within 10 %)"."""
    if guess == measured:
        return translate("exactly")
    more = measured > guess
    if guess * measured <= 0:  # a ratio says nothing
        off = number(abs(measured - guess), unit)
        return translate("{number} more", number=off) if more else translate("{number} less", number=off)
    ratio = measured / guess
    if abs(ratio - 1) <= CLOSE:
        return translate("close (within {percent:.0f} %)", percent=100 * CLOSE)
    if 0.5 < ratio < 2:
        said = marked("{percent:.0f} % more") if more else marked("{percent:.0f} % less")
        return translate(said, percent=abs(ratio - 1) * 100)
    times = number(round(ratio if more else 1 / ratio, 1))
    return translate("{times} times more", times=times) if more else translate("{times} times less", times=times)


def drawn_words(
    guess: Sequence[float], measured: Sequence[float], places: Sequence[str], unit: str, who: str = "you"
) -> str:
    """One sentence about a drawn trace: where its peak is, and how far the columns are apart.

    The distance is the median over the columns of the larger over the smaller value: 1 is the same trace. Columns where
    nothing was measured, or where one of the two is 0, do not count.

    Args:
        guess: a value for each column.
        measured: likewise; NaN where nothing was measured. There may be more of these: time went on.
        places: the name of each column, such as "2.5 s"; as many as ``measured``.
        unit: of the values.
        who: whose guess it was.
    """
    there = {place: value for value, place in zip(measured, places, strict=True) if not math.isnan(value)}
    if not there:
        return translate("the trace was not measured.")
    where = max(there, key=lambda place: there[place])  # the first of equals
    at = max(range(len(guess)), key=lambda column: guess[column])
    flat = translate("a flat line") if min(guess) == max(guess) else translate("the peak at {place}", place=places[at])
    said = translate(
        "the peak was {peak} at {where}; {who} drew {flat}, {drawn}.",
        peak=number(there[where], unit),
        where=where,
        who=translate(who),
        flat=flat,
        drawn=number(guess[at], unit),
    )
    pairs = [(g, m) for g, m in zip(guess, measured, strict=False) if g > 0 and m > 0]
    if pairs:
        apart = sorted(max(g, m) / min(g, m) for g, m in pairs)
        middle = len(apart) // 2
        factor = apart[middle] if len(apart) % 2 else math.sqrt(apart[middle - 1] * apart[middle])
        said += translate(" Half of the columns are off by a factor of {factor:.1f} or less.", factor=factor)
    return said
