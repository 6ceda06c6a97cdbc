"""Plays named streams of the stub with our client, as any workload is played."""

from __future__ import annotations

import contextlib
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from workbench.driver.host import DriverProcess
from workbench.errors import EngineError
from workbench.meter.compare import Errors, compare
from workbench.meter.stub import Stub
from workbench.workload.request import Request, Workload

Row = dict[str, Any]
_PROMPT = (5, 6, 7, 8)


class Played:
    """What came of a play; a sink for its rows."""

    def __init__(self) -> None:
        self.zero = 0.0
        self.requests: dict[str, Row] = {}
        self.tokens: dict[str, list[Row]] = defaultdict(list)
        self.late_s: list[float] = []  # how late the client's loop ran, where it was
        self.reported_twice = 0
        self._lock = threading.Lock()

    def rows(self, table: str, rows: list[Row]) -> None:
        """Keep rows."""
        with self._lock:
            if table == "tokens":
                for row in rows:
                    self.tokens[row["request"]].append(row)
            elif table == "requests":
                for row in rows:
                    self.reported_twice += row["request"] in self.requests
                    self.requests[row["request"]] = row
            elif table == "client":
                self.late_s += [row["late_s"] for row in rows]

    def errors(self, truth: Row) -> dict[str, Errors]:
        """Each stream against the truth; one that the server never saw has lost nothing."""
        nothing: Row = {"arrivals": [], "held_up": 0, "read": 0.0}
        return {
            name: compare(truth.get(name, nothing), row, self.tokens.get(name, ()), self.zero)
            for name, row in self.requests.items()
        }


def request(name: str, tokens: int, arrival_s: float = 0.0) -> Request:
    """A request for the stream of that name."""
    return Request(name, "meter", 0, arrival_s, _PROMPT, tokens)


def play(
    driver: DriverProcess,
    requests: Sequence[Request],
    timeout_s: float,
    watch: Callable[[float], None] | None = None,
) -> Played:
    """Play requests to the end.

    Args:
        driver: a client of the stub.
        requests: from :func:`request`.
        timeout_s: after it the play is cancelled, and what there is is returned.
        watch: told the share of the tokens that have arrived.

    Raises:
        EngineError: the client ended.
    """
    played = Played()
    going = driver.play(Workload(tuple(requests), {}), played, lambda _play: contextlib.nullcontext(), lambda: None)
    played.zero = going.zero
    total = sum(one.output_tokens for one in requests)
    deadline = going.zero + timeout_s
    while not going.wait(0.1):
        if watch is not None:
            watch(min(1.0, going.output_tokens / total))
        if going.zero + going.now_s > deadline:
            going.cancel()
            if not going.wait(5.0):
                raise EngineError(f"client: got no end of a play within {timeout_s:g} s, expected one; run it again")
    return played


def client_of(stub: Stub) -> DriverProcess:
    """Our client, in a process of its own, with the stub as its server."""
    return DriverProcess(port=stub.port, api_key="meter", model="stub")
