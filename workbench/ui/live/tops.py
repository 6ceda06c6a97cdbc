"""Ends of axes that follow the data without trembling: out at once, back late."""

from __future__ import annotations

import math
from collections.abc import Callable

_BACK_AT = 0.6  # share of the axis that the data must have shrunk to before it follows
_BACK_AFTER_S = 3.0  # and for how long


def two_digits(value: float) -> float:
    """Round up to two significant digits."""
    if value <= 0:
        return 0.0
    grain = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(round(value / grain, 6)) * grain:.6g}")


def decade(value: float) -> float:
    """Round up to a power of ten."""
    return float(f"1e{math.ceil(round(math.log10(value), 9))}") if value > 0 else 0.0


class Top:
    """The upper end of an axis.

    Args:
        least: smallest value it takes; also what it begins with.
        room: it is so many times the largest of the data.
        up: rounds it up, so that it does not move with every row.
    """

    def __init__(self, least: float, room: float = 1.0, up: Callable[[float], float] = two_digits) -> None:
        self.value = least
        self._least, self._room, self._up = least, room, up
        self._small_since: float | None = None

    def follow(self, largest: float, now_s: float) -> float:
        """Return the top for data of which ``largest`` is the largest, at ``now_s``."""
        want = max(self._least, self._up(largest * self._room))
        if want > self.value:
            self.value = want
        if want > self.value * _BACK_AT:
            self._small_since = None
        elif self._small_since is None:
            self._small_since = now_s
        elif now_s - self._small_since >= _BACK_AFTER_S:
            self.value, self._small_since = want, None
        return self.value
