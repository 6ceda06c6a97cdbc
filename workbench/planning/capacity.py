"""The most requests a second that meet a rule, by bisection on a ladder of rates that are a fixed factor apart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import floor, log, sqrt

from workbench.errors import InputError
from workbench.i18n import phrase
from workbench.planning.rule import Verdict

Try = Callable[[float], Verdict]  # plays a load at a rate, 1/s
_FAR = 100.0  # times below and above the first guess that rates are tried
_FASTER = 1.3  # each stride is at least so many times the one before
_BEYOND = ((0.9, 1.0), (0.75, 1.2), (0.5, 1.4), (0.0, 2.0))  # share that met the SLO, and how far too high that is
_PATIENT = 2  # strides down before the lowest rate is asked


@dataclass(frozen=True)
class Capacity:
    """Between which rates the capacity lies.

    Attributes:
        low: the highest rate that was met, 1/s; 0 where even the lowest was not.
        high: the lowest rate that was not met; None where all that were tried were met.
        plays: how many rates were played for it.
        stopped: why the search ended.
        at: the play at ``low``; None at 0.
        over: the play at ``high``; None where there is none.
    """

    low: float
    high: float | None
    plays: int
    stopped: str
    at: Verdict | None
    over: Verdict | None

    @property
    def reason(self) -> str:
        """For a capacity of 0, why; else empty."""
        if self.low or self.over is None:
            return ""
        name, share = self.over.worst
        why = phrase(": {why}", why=self.over.why) if self.over.failed and self.over.why else ""
        return phrase(
            "at {rate:.3g} requests/s, almost one at a time, the SLO is met by {share:.0%} ({misses}; "
            "class {name}: {own:.0%} meet it){why}",
            rate=self.over.rate,
            share=self.over.share,
            misses=self.over.misses,
            name=name,
            own=share,
            why=why,
        )


def find_capacity(play: Try, first: float, step: float, *, doubtful: bool = False) -> Capacity:
    """Search from a first guess up or down in growing strides, then halve the bracket until one step is left.

    Args:
        play: says what comes of a rate; more is taken to be never better.
        first: a guess, 1/s; the nearest rung below it is played first.
        step: rungs are this far apart: 0.1 is 10 %. Rungs are powers of 1 + step, so that several searches try
            the same rates.
        doubtful: play the lowest rate first, since it may not be met either.

    Raises:
        InputError: the guess or the step is not above 0.
    """
    if not first > 0 or not step > 0:
        raise InputError("rate", f"{first:g} in steps of {step:g}", "both above 0", "start from a rate above 0")
    size = log(1 + step)
    tried: dict[int, Verdict] = {}

    def ask(rung: int) -> Verdict:
        if rung not in tried:
            tried[rung] = play((1 + step) ** rung)
        return tried[rung]

    start = floor(log(first) / size + 1e-9)
    lowest, highest = start - round(log(_FAR) / size), start + round(log(_FAR) / size)
    low: int | None = None
    high: int | None = None
    if doubtful and not ask(lowest).met:
        high = lowest
    elif ask(start).met:
        low, high = _climb(ask, start, highest, size)
    else:
        low, high = _descend(ask, start, lowest, size)
    while low is not None and high is not None and high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if ask(middle).met else (low, middle)
    if low is None:
        stopped = phrase("even the lowest rate is not met")
    elif high is None:
        stopped = phrase("the highest rate that was tried, {step:.4g}/s, is met", step=(1 + step) ** highest)
    else:
        stopped = phrase("the bracket is one step of {step:.0%}", step=step)
    return Capacity(
        low=(1 + step) ** low if low is not None else 0.0,
        high=(1 + step) ** high if high is not None else None,
        plays=len(tried),
        stopped=stopped,
        at=tried[low] if low is not None else None,
        over=tried[high] if high is not None else None,
    )


def _climb(ask: Callable[[int], Verdict], start: int, highest: int, size: float) -> tuple[int, int | None]:
    """From a rung that is met to one that is not; none where the highest is met too."""
    low, factor = start, 1.0
    while low < highest:
        factor = max(factor * _FASTER, _stride(ask(low)))
        rung = min(low + max(1, round(log(factor) / size)), highest)
        if not ask(rung).met:
            return low, rung
        low = rung
    return low, None


def _descend(ask: Callable[[int], Verdict], start: int, lowest: int, size: float) -> tuple[int | None, int]:
    """From a rung that is not met to one that is.

    The lowest is asked before the third stride: where nothing meets the SLO, that play says why and others would be
    in vain.
    """
    high, factor, strides = start, 1.0, 0
    while high > lowest:
        if strides == _PATIENT and not ask(lowest).met:
            return None, lowest
        factor, strides = max(factor * _FASTER, _stride(ask(high))), strides + 1
        rung = max(high - max(1, round(log(factor) / size)), lowest)
        if ask(rung).met:
            return rung, high
        high = rung
    return None, lowest


def _stride(verdict: Verdict) -> float:
    """By which factor to go on from a rate: the further it is from the rule, the more. Only a guess; bisection ends it.

    An engine that is busy for a third of the time may do three times as much; one that missed most is far beyond.
    """
    if verdict.met:
        busy = max(verdict.facts.get("busy") or 1.0, 0.1)
        return sqrt(max(1 / busy, 1.0))
    return float(next(factor for share, factor in _BEYOND if verdict.share >= share))
