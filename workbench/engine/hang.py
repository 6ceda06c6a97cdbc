"""Whether an engine that owes output stands still: nothing comes of it, and its processes hardly use the processor.

A long step is no hang. On a CPU a large prompt computes for minutes in one step, and on a GPU the host waits for it in
a loop: both use the processor. So silence alone says nothing; a process that was stopped does, and so does an engine
that neither answers nor computes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

from workbench.i18n import phrase, phrase_counted
from workbench.proc import cpu_seconds, in_session, state

STOPPED_S = 5.0  # a process that somebody stopped for a look goes on within these
IDLE_S = 60.0
_IDLE_SHARE = 0.02  # of one core: below it nobody computes; an API server that waits uses a tenth of that
_LOOK_S = 0.5  # between two looks at /proc
_PAUSE_S = 1.0  # at most what counts of the time between two looks: the machine, or we, may have been stopped too


class Pulse:
    """Tells a hang of one engine from work that takes long.

    Args:
        leader: pid of the engine's session leader.
        clock: seconds.
    """

    def __init__(self, leader: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._leader, self._clock = leader, clock
        self._looked_s = clock()
        self._done: Hashable = None
        self._silent_s = self._idle_s = 0.0
        self._cpu_s: float | None = None  # of all processes, when the idle time began

    def look(self, done: Hashable, owed: int) -> str | None:
        """What is wrong, if the engine hangs; to be asked again and again while a play goes on.

        Args:
            done: all that it has done so far; whatever changes is a sign of life.
            owed: requests that it still owes output.
        """
        now = self._clock()
        if now < self._looked_s + _LOOK_S:
            return None
        passed, self._looked_s = min(now - self._looked_s, _PAUSE_S), now
        if not owed or done != self._done:
            self._done, self._silent_s, self._idle_s, self._cpu_s = done, 0.0, 0.0, None
            return None
        self._silent_s += passed
        if self._silent_s < STOPPED_S:
            return None
        states = {pid: state(pid) for pid in in_session(self._leader)}
        if "t" in states.values():  # somebody looks at it with a debugger, and knows why it stands still
            self._silent_s, self._cpu_s = 0.0, None
            return None
        still = [pid for pid, letter in states.items() if letter == "T"]
        if still:
            return self._said(owed, self._silent_s, phrase("process {pid} of it is stopped (SIGSTOP)", pid=still[0]))
        return self._idle(list(states), passed, owed)

    def _idle(self, pids: list[int], passed: float, owed: int) -> str | None:
        used = cpu_seconds(pids)
        if self._cpu_s is None or used < self._cpu_s:  # the latter when one of them has ended
            self._cpu_s, self._idle_s = used, 0.0
            return None
        self._idle_s += passed
        if used - self._cpu_s > _IDLE_SHARE * max(self._idle_s, STOPPED_S):
            self._cpu_s, self._idle_s = used, 0.0  # it computes: begin anew
        elif self._idle_s >= IDLE_S:
            return self._said(owed, self._silent_s, phrase("its processes wait and do not compute"))
        return None

    @staticmethod
    def _said(owed: int, silent_s: float, why: str) -> str:
        requests = phrase_counted("a request that waits", "{n:,} requests that wait", owed)
        return phrase(
            "got no step and no token for {silent_s:.0f} s with {requests}, expected some: {why}",
            silent_s=silent_s,
            requests=requests,
            why=why,
        )
