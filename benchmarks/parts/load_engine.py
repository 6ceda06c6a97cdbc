"""The stub server as an engine, and a workbench as far as the feed of the live charts needs one."""

from __future__ import annotations

import contextlib
from typing import Any

from workbench.config import SLO, Envelope, Knobs
from workbench.driver.host import DriverProcess
from workbench.driver.play import Play
from workbench.engine.protocol import Progress, State
from workbench.errors import EnvelopeError
from workbench.meter.play import client_of
from workbench.meter.stub import Stub
from workbench.run import Run
from workbench.trace import Sink
from workbench.workload.request import Workload

LABEL = "stub server"


class StubEngine:
    """Plays on the stub server with the client that plays on every engine.

    Args:
        stub: the server.

    Attributes:
        client: its process.
        playing: what was played last.
    """

    playing: Play
    label = LABEL
    state: State = "ready"
    trouble = ""
    exact_prompts = True

    def __init__(self, stub: Stub) -> None:
        self.client: DriverProcess = client_of(stub)

    @property
    def envelope(self) -> Envelope:
        """It has none."""
        raise _no_knobs()

    @property
    def knobs(self) -> Knobs:
        """It has none."""
        raise _no_knobs()

    def start(self, progress: Progress | None = None) -> None:
        """It is up."""

    def stop(self) -> None:
        """End the client."""
        self.client.close()

    def set_knobs(self, knobs: Knobs) -> int:  # noqa: ARG002
        """It has none."""
        raise _no_knobs()

    def reset_prefix_cache(self) -> None:
        """It has none."""

    def play(self, workload: Workload, sink: Sink, hold_s: float | None = None) -> Play:
        """Start to play; what arrives goes to ``sink``."""
        self.playing = self.client.play(workload, sink, lambda _: contextlib.nullcontext(), lambda: None, hold_s)
        return self.playing

    def describe(self) -> dict[str, Any]:
        """What it is."""
        return {"engine": LABEL}


class Bench:
    """What :class:`workbench.ui.live.feed.Feed` looks at of a workbench."""

    def __init__(self, engine: StubEngine, run: Run) -> None:
        self.engine, self.current_run, self.slo = engine, run, SLO()


def _no_knobs() -> EnvelopeError:
    return EnvelopeError("knobs", "a stub server", "an engine that has some", "leave them alone in this load")
