"""The last rows of a run that is going on, in memory: what live charts are fed from."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass
from typing import Any

Batch = tuple[str, list[dict[str, Any]]]  # a table and rows of it, as a sink takes them
MOST_ROWS = 100_000  # some minutes of a laptop's traffic, some 50 MB


@dataclass(frozen=True)
class Place:
    """How far a reader of a :class:`Tail` has come.

    Attributes:
        batches: put so far, those that are gone included.
        rows: that this reader has seen.
        missed: rows that were let go of before this reader saw them.
    """

    batches: int = 0
    rows: int = 0
    missed: int = 0


_BEGINNING = Place()


class Tail:
    """A bounded ring of rows. Anybody may read from where they left off; nobody makes the run wait.

    Args:
        most_rows: kept; older batches go, and readers who had not seen them are told how many rows they missed.
    """

    def __init__(self, most_rows: int = MOST_ROWS) -> None:
        self._batches: deque[Batch] = deque()
        self._lock = threading.Lock()
        self._most = most_rows
        self._rows = 0  # kept now
        self._gone_batches = self._gone_rows = 0  # let go of since the start

    def put(self, table: str, rows: list[dict[str, Any]]) -> None:
        """Take rows from any thread; they must not be changed afterwards."""
        if not rows:
            return
        with self._lock:
            self._batches.append((table, rows))
            self._rows += len(rows)
            while self._rows > self._most and len(self._batches) > 1:
                _, old = self._batches.popleft()
                self._rows -= len(old)
                self._gone_rows += len(old)
                self._gone_batches += 1

    def since(self, place: Place = _BEGINNING) -> tuple[list[Batch], Place]:
        """Return what came after ``place``, and the place to go on from."""
        with self._lock:
            skip = max(0, place.batches - self._gone_batches)
            fresh = [self._batches[i] for i in range(skip, len(self._batches))]
            seen = place.rows + sum(len(rows) for _, rows in fresh)
            taken = self._gone_rows + self._rows
            return fresh, Place(self._gone_batches + len(self._batches), seen, taken - seen)
