"""How late the client's own event loop runs, so that what it read late is not blamed on the server.

A timer that should fire every 10 ms notes by how much it was late. Whatever kept it waiting (this process parsing, or
a machine without a free core) kept packets from being stamped just as long.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from workbench.driver.messages import LateRow

PERIOD_S = 0.01  # 100 looks a second: some 0.2 % of a core
LATE_S = 0.005  # what a busy but healthy loop stays under; a timer's own grain is 1 ms


class Lateness:
    """Watches the loop that it is made in, until it is stopped.

    The first reading is always noted, however small: it says that somebody measured.

    Args:
        zero: CLOCK_MONOTONIC of the play's zero.
        loop: the event loop; the running one if left out.
        clock: CLOCK_MONOTONIC; uvloop's own is read once a turn of the loop, and would miss what the turn takes.
    """

    def __init__(
        self,
        zero: float,
        loop: asyncio.AbstractEventLoop | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._loop = loop or asyncio.get_running_loop()
        self._clock = clock
        self._zero = zero
        self._rows: list[LateRow] = []
        self._first = True
        self._expect()

    def take(self) -> list[LateRow]:
        """What was noted since the last call."""
        rows, self._rows = self._rows, []
        return rows

    def stop(self) -> None:
        """Look no more."""
        self._timer.cancel()

    def _expect(self) -> None:
        self._due = self._clock() + PERIOD_S
        self._timer = self._loop.call_later(PERIOD_S, self._look)

    def _look(self) -> None:
        now = self._clock()
        late = max(0.0, now - self._due)
        if late >= LATE_S or self._first:
            self._first = False
            self._rows.append(LateRow(now - self._zero, late))
        self._expect()
