"""Who plays the trials of a search: several at a time, or a player of one as workers of which there is one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from workbench.tail import Batch
from workbench.tune.trial import Asked, Player, Result, Stop, Watch
from workbench.workload.request import Workload


class Workers(Protocol):
    """Plays several trials at a time, such as :class:`workbench.tune.ray.player.RayPlayer`.

    Attributes:
        workers: how many trials it plays at a time; asking for more makes them wait.
    """

    workers: int

    def submit(self, asked: Asked, *, beat: float | None = None) -> None:
        """Ask for a trial, with the goodput (requests/s) that it must be able to reach; returns at once."""

    def results(self, timeout_s: float | None = None) -> list[Result]:
        """What has come back since the last call, in that order; waits for the first."""


def workers_of(player: Player, watch: Callable[[float | None], Watch]) -> Workers:
    """A player that takes several trials as it is, another one as one worker.

    Args:
        player: plays the trials.
        watch: makes what looks at a trial while it is played here, given a goodput to beat.
    """
    return cast(Workers, player) if hasattr(player, "submit") else _OneAtATime(player, watch)


class _OneAtATime:
    """It plays while it is asked."""

    workers = 1

    def __init__(self, player: Player, watch: Callable[[float | None], Watch]) -> None:
        self._player, self._watch, self._back = player, watch, list[Result]()

    def submit(self, asked: Asked, *, beat: float | None = None) -> None:
        self._back.append(self._player.play(asked, self._watch(beat)))

    def results(self, timeout_s: float | None = None) -> list[Result]:  # noqa: ARG002  they are there
        back, self._back = self._back, []
        return back


class Stoppable:
    """A watch that also sees when somebody stops the study.

    Args:
        test: the watch; None lets every trial go to its end.
        stopping: set once somebody has.
    """

    def __init__(self, test: Watch | None, stopping: threading.Event) -> None:
        self._test, self._stopping = test, stopping

    def begin(self, workload: Workload) -> None:
        """A trial begins."""
        if self._test is not None:
            self._test.begin(workload)

    def look(self, batches: Sequence[Batch]) -> Stop | None:
        """Take rows that are new; None is to go on."""
        if self._stopping.is_set():
            return Stop("", 0.0, "the study was stopped")
        return self._test.look(batches) if self._test is not None else None
