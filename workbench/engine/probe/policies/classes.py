"""Classes of service, and who has to yield to whom. The class is the priority that the API gives a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vllm.v1.core.sched.request_queue import RequestQueue
    from vllm.v1.request import Request

VIP, NORMAL, OFFLINE = 0, 1, 2


class Classes:
    """The classes at one moment.

    Args:
        now: in the clock of the requests' arrival, seconds.
        aging_s: an offline request of this age counts as normal; 0: none does.
    """

    def __init__(self, now: float, aging_s: float) -> None:
        self._aged_before = now - aging_s if aging_s else float("-inf")

    def of(self, request: Request) -> int:
        """Its class; a priority below 0 is a VIP's, one above 2 is offline."""
        if request.priority < OFFLINE:
            return max(int(request.priority), VIP)
        return NORMAL if request.arrival_time <= self._aged_before else OFFLINE

    def sort(self, waiting: RequestQueue) -> None:
        """Put a queue of vLLM's into the order of the classes, those of one class as they were."""
        classes = [self.of(one) for one in waiting]
        if classes != sorted(classes):
            ordered = sorted(waiting, key=self.of)
            waiting.clear()
            waiting.extend(ordered)

    def below(self, request: Request, running: list[Request]) -> list[Request]:
        """Which of the running have to yield to a request: the lowest class first, in it the least work done first.

        Among those that run, more work goes before less within a class too, and of equals who came first, or two
        could wait for each other for ever. Nobody has to yield to an equal that waits, and a VIP to nobody.
        """
        level = self.of(request)
        last_first = running[::-1]
        ranked = sorted(last_first, key=lambda one: (-self.of(one), one.num_computed_tokens))
        mine = ranked.index(request) if level != VIP and request in running else 0
        return [one for i, one in enumerate(ranked) if self.of(one) > level or i < mine]
