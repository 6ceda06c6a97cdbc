"""The stub server's process, as who plays against it sees it."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from types import TracebackType
from typing import Any

from workbench.errors import EngineError

_START_S = 60.0
_CLOSE_S = 5.0


class Stub:
    """A running stub server; ends with its ``with``, and with the process that started it.

    Args:
        period_ms: between two tokens of a stream that names no script.

    Raises:
        EngineError: it did not start.
    """

    def __init__(self, period_ms: float = 20.0) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "workbench.meter.server", str(period_ms)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        line = self._process.stdout.readline()  # type: ignore[union-attr]
        if not line.strip().isdigit():
            self.close()
            raise EngineError("stub server: got no port from it, expected one; run `workbench doctor`")
        self.port = int(line)

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def truth(self) -> dict[str, dict[str, Any]]:
        """What it did so far, by name of the request.

        ``read``: when it had read the request. ``arrivals``: of each event with output, CLOCK_MONOTONIC before
        and after it was handed to the socket, and its tokens. ``held_up``: packets that the socket did not take.
        ``sent``: of a load, in place of these, the tokens that were handed over.
        """
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/truth", timeout=_START_S) as answer:
            return dict(json.load(answer))

    def finish(self) -> None:
        """Have it end the loads, each with its next token."""
        url = f"http://127.0.0.1:{self.port}/finish"
        with urllib.request.urlopen(urllib.request.Request(url, method="POST"), timeout=_START_S):
            pass

    def close(self) -> None:
        """End it."""
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        try:
            self._process.wait(_CLOSE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Stub:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
