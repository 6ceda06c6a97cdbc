"""Who uses an engine: the run that goes on, or what holds it for itself; whatever else comes is refused."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from workbench.engine.attached import AttachedEngine
from workbench.engine.live import LiveEngine
from workbench.errors import EngineError
from workbench.i18n import phrase
from workbench.run import Run
from workbench.simulate.engine import SimulatedEngine

AnyEngine = LiveEngine | SimulatedEngine | AttachedEngine


class InUse:
    """An engine that one run at a time is played on.

    Args:
        engine: which.

    Attributes:
        engine: what is played on; it may be replaced while it does not run.
        held_by: what plays on the engine and wants it for itself, such as "study tuning-1130"; empty is nothing.
    """

    def __init__(self, engine: AnyEngine) -> None:
        self.engine = engine
        self.held_by = ""
        self._run: Run | None = None

    @property
    def current_run(self) -> Run | None:
        """The run that is going on, or the last one; none if nothing was played yet."""
        return self._run

    @property
    def playing(self) -> bool:
        """Whether a run is going on."""
        return self._run is not None and not self._run.done

    @contextlib.contextmanager
    def held(self, by: str) -> Iterator[None]:
        """Keep the engine as it is set meanwhile: :meth:`Workbench.knobs` and :meth:`drop_long` are refused.

        Args:
            by: what holds it, for the words of an error.

        Raises:
            EngineError: something else does.
        """
        self._expect_free(by)
        self.held_by = by
        try:
            yield
        finally:
            self.held_by = ""

    def _expect_ready(self, what: str) -> None:
        """Asked before there is a folder for a run."""
        if self.engine.state != "ready":
            raise self._not_ready(what)

    def _not_ready(self, what: str) -> EngineError:
        state = phrase(self.engine.state)
        return EngineError(
            phrase("{what} while the engine is {state}, expected ready; start it first", what=what, state=state)
        )

    def _expect_free(self, what: str) -> None:
        """Nobody turns a knob or drops a prompt under what is measured: it would be of another setting than it says."""
        if self.held_by:
            raise EngineError(
                phrase(
                    "{what}: {other} goes on, expected an engine at rest; wait for it, or stop it",
                    what=what,
                    other=self.held_by,
                )
            )

    def _expect_rest(self, what: str) -> None:
        """One run at a time."""
        self._expect_ready(phrase("{what}: got a workload", what=what))
        if self.playing:
            raise EngineError(
                phrase(
                    "{what}: got a second run, expected one at a time; wait for the first, or stop it (wb.stop_load())",
                    what=what,
                )
            )
