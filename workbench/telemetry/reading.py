"""What a memory source answers: a number of bytes, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


def na(reason: str) -> str:
    """Text of a missing value: ``n/a (reason)``, on one line."""
    return f"n/a ({' '.join(reason.split())})"


@dataclass(frozen=True, slots=True)
class Reading:
    """One answer of a source.

    Attributes:
        bytes: the value, or None when there is none. A missing value is never 0 and never the last value.
        note: ``n/a (reason)`` when ``bytes`` is None, else None.
    """

    bytes: int | None
    note: str | None = None

    @classmethod
    def missing(cls, reason: str) -> Reading:
        """Return the answer of a source that has no value, with the reason."""
        return cls(None, na(reason))


class Source(Protocol):
    """One line of the ``memory`` table, read again and again by the sampler's thread.

    ``read`` must be quick, and may raise: the sampler turns an exception into ``n/a (reason)``.
    """

    @property
    def name(self) -> str:
        """What the line is called (``nvml:0 used``, ``host engine rss``)."""

    def read(self) -> Reading:
        """Read the value now."""


@dataclass(frozen=True)
class Every:
    """A source that is read less often than the sampler ticks, since one reading is slow.

    Between two readings it has no rows: the last value is never repeated.

    Attributes:
        source: the slow source.
        seconds: how often it is read.
    """

    source: Source
    seconds: float

    @property
    def name(self) -> str:
        """Name of the slow source."""
        return self.source.name

    def read(self) -> Reading:
        """Read the slow source now."""
        return self.source.read()
