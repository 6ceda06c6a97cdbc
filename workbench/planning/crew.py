"""Several simulators at work: each does one thing at a time, and the first error ends all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from queue import SimpleQueue
from typing import Any

from workbench.planning.plays import Player


class Crew:
    """Players that are lent to whoever has something to play.

    Attributes:
        players: all of them.
    """

    def __init__(self, players: Sequence[Player]) -> None:
        self.players = tuple(players)
        self._free: SimpleQueue[Player] = SimpleQueue()

    def start(self, tell: Callable[[str], None]) -> None:
        """Start them all; those that have come up can be lent.

        Args:
            tell: told what is going on, in several threads.

        Raises:
            EngineError: one did not come up.
            StoppedError: they were stopped meanwhile.
        """

        def start(player: Player) -> None:
            player.start(lambda _seconds, what: tell(what))
            self._free.put(player)

        self.at_once(start, self.players)

    @contextmanager
    def one(self) -> Iterator[Player]:
        """Lend the next that is free."""
        player = self._free.get()
        try:
            yield player
        finally:
            self._free.put(player)

    def at_once(self, do: Callable[[Any], object], over: Sequence[Any]) -> list[Any]:
        """Do something for each of several, in threads.

        Args:
            do: what; it takes a player by :meth:`one` where it plays.
            over: for each of these.

        Returns:
            What came of each, in the same order.

        Raises:
            Exception: the first that one of them raised; all players are stopped then.
        """
        with ThreadPoolExecutor(max(len(over), 1), thread_name_prefix="planner") as pool:
            tasks: list[Future[Any]] = [pool.submit(do, one) for one in over]
            try:
                wait(tasks, return_when="FIRST_EXCEPTION")
                failed = [task for task in tasks if task.done() and task.exception() is not None]
                if failed:
                    failed[0].result()
            except BaseException:
                self.stop()
                raise
        return [task.result() for task in tasks]

    def stop(self) -> None:
        """End what they play; they play nothing more."""
        for player in self.players:
            player.stop()

    def close(self) -> None:
        """End them all, also where one of them cannot be ended."""
        with ExitStack() as all_of_them:
            for player in self.players:
                all_of_them.callback(player.close)
