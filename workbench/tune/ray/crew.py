"""Which worker plays which trial: engines are kept busy, restarts are few, a lost trial is tried again elsewhere."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from workbench.tune.ray.remote import Order

TRIES = 3  # of one trial, on as many workers


@dataclass
class Worker:
    """One worker, as the crew knows it.

    Attributes:
        name: of this worker; one that replaces it has another.
        state: "starting", "idle", "busy".
        start_up: of the engine that it holds, as :attr:`Order.start_up`; None before its first trial.
        order: what it plays.
    """

    name: int
    state: Literal["starting", "idle", "busy"] = "starting"
    start_up: str | None = None
    order: Order | None = None


class Crew:
    """Keeps the books; knows nothing of Ray.

    Args:
        tries: most times that a trial is tried.
    """

    def __init__(self, tries: int = TRIES) -> None:
        self.workers: dict[int, Worker] = {}
        self._tries, self._named = tries, 0
        self._waiting: deque[Order] = deque()
        self._losses: Counter[int] = Counter()

    def hire(self) -> Worker:
        """A new worker, which is starting."""
        self._named += 1
        worker = self.workers[self._named] = Worker(self._named)
        return worker

    def ask(self, order: Order) -> None:
        """Take a trial to be played."""
        self._waiting.append(order)

    def assign(self) -> Iterator[tuple[Worker, Order]]:
        """Give idle workers something to play: what their engine is set up for, else what has waited longest."""
        for worker in [one for one in self.workers.values() if one.state == "idle"]:
            if not self._waiting:
                return
            order = next((one for one in self._waiting if one.start_up == worker.start_up), self._waiting[0])
            self._waiting.remove(order)
            worker.state, worker.order, worker.start_up = "busy", order, order.start_up
            yield worker, order

    def free(self, worker: Worker) -> Order | None:
        """A worker has started, or has played its trial, which is returned."""
        order, worker.order, worker.state = worker.order, None, "idle"
        return order

    def lose(self, worker: Worker) -> tuple[Order | None, int]:
        """A worker is gone. Its trial waits again, before all others, unless it was tried often enough.

        Returns:
            The trial that it played, if any, and how often that may be tried again: 0 is never.
        """
        del self.workers[worker.name]
        order = worker.order
        if order is None:
            return None, 0
        self._losses[order.asked.number] += 1
        left = max(0, self._tries - self._losses[order.asked.number])
        if left:
            self._waiting.appendleft(order)
        return order, left

    def lost(self, number: int) -> int:
        """How often a trial was lost."""
        return self._losses[number]
