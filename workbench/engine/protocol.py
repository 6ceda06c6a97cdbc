"""What every engine can do: live, attached and simulated ones look the same from here on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol

from workbench.config import Envelope, Knobs
from workbench.trace import Sink
from workbench.workload.request import Request, Workload

Label = str  # "live CPU", "live GPU", "simulated", or "attached (host:port)"
State = Literal["new", "starting", "ready", "stopping", "stopped", "failed"]
Progress = Callable[[float, str], None]  # elapsed seconds, what is going on


class Playing(Protocol):
    """A workload that is being played."""

    @property
    def zero(self) -> float:
        """The run's zero, in seconds of CLOCK_MONOTONIC."""

    @property
    def now_s(self) -> float:
        """Where its clock is, in seconds from its zero; a simulation's is virtual."""

    def add(self, request: Request) -> None:
        """Play one more request, now (its arrival is taken as the present moment)."""

    def reach(self, at_s: float) -> bool:
        """Wait until its clock is at ``at_s``; false if the play is over before.

        The clock of a simulation stands there until the next call of this or of :meth:`release`.
        """

    def release(self) -> None:
        """Send the requests that were held; let a clock that stands go on."""

    def cancel(self) -> None:
        """End all requests of the play; what was measured stays."""

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until all requests have ended; false if they have not after ``timeout_s``.

        Raises:
            EngineDiedError: the engine ended in the meantime.
        """


class Engine(Protocol):
    """An engine that workloads are played on."""

    @property
    def label(self) -> Label:
        """Where its numbers come from; it stands on every chart."""

    @property
    def state(self) -> State:
        """What the engine is doing."""

    @property
    def trouble(self) -> str:
        """What is odd with it just now, in a line for a person, though it has not failed; empty where nothing is."""

    @property
    def exact_prompts(self) -> bool:
        """Whether prompts go out as token ids, so that their lengths are known before it counts them."""

    @property
    def envelope(self) -> Envelope:
        """Bounds of the hot knobs.

        Raises:
            EnvelopeError: the engine has no hot knobs.
        """

    @property
    def knobs(self) -> Knobs:
        """Knobs in force, as last set.

        Raises:
            EnvelopeError: the engine has no hot knobs.
        """

    def start(self, progress: Progress | None = None) -> None:
        """Bring the engine up; returns when it is ready."""

    def stop(self) -> None:
        """End it; nothing is left behind. May be called at any time and from any thread."""

    def set_knobs(self, knobs: Knobs) -> int:
        """Set the hot knobs for the next step; return the revision."""

    def reset_prefix_cache(self) -> None:
        """Empty the prefix cache of an engine at rest.

        Raises:
            ConfigError: it has none.
            EngineError: it is not at rest, or the cache could not be emptied.
        """

    def play(self, workload: Workload, sink: Sink, hold_s: float | None = None) -> Playing:
        """Start to play a workload; measured rows go to ``sink``.

        Requests planned for ``hold_s`` or later are held until :meth:`Playing.release`, so that a change which is due
        then is made before them however busy the machine is. Their schedule lag tells how long they were held.
        """

    def describe(self) -> dict[str, Any]:
        """Facts for a run's metadata: versions, command, pid, resolved configuration, memory split."""
