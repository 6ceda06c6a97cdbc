"""What the panel's buttons and knobs do to a workbench."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from workbench.session import Workbench
from workbench.ui.panel.actions import Actions
from workbench.ui.panel.buttons import STOP
from workbench.ui.panel.forms import Forms
from workbench.ui.panel.log import LogDrawer


class Driving:
    """Drives one workbench by what the forms say; what takes time is to be called in a thread.

    Args:
        bench: what is driven.
        forms: are asked.
        log: is cleared where something new begins.
        actions: run what takes time.

    Attributes:
        progress: seconds and words of the start that goes on; None while there is none.
        revision: of the knobs that are shown.
        shown_config: start-up fields that are shown.
    """

    def __init__(self, bench: Workbench, forms: Forms, log: LogDrawer, actions: Actions) -> None:
        self._bench, self._forms, self._log, self._actions = bench, forms, log, actions
        self.progress: tuple[float, str] | None = None
        self.revision = -1
        self.shown_config = bench.config
        self._stopping = self._stop_comparing = False

    def start(self) -> None:
        """Start the engine with the fields that are shown; being stopped meanwhile is no error."""
        self._log.clear()
        self._stopping = False
        form = self._forms.start
        if form.config is None:
            return
        self.progress = (0.0, "starting")
        try:
            changes = form.changes
            self.shown_config = self._bench.configure(**form.fields)
            self._bench.start(self._tell_progress)
            if changes:
                self._bench.knobs(**changes)
        except Exception:
            if not self._stopping:
                raise
        finally:
            self.progress = None

    def _tell_progress(self, seconds: float, what: str) -> None:
        self.progress = (seconds, what)

    def stop(self) -> None:
        """End the run and the engine."""
        self._stopping = True
        self._bench.stop()

    def run_or_stop(self) -> None:
        """What the button says, also when that has just ceased to be true."""
        stop = self._forms.buttons.run.text == STOP
        self._actions.run("load", self._bench.stop_load if stop else self._play)

    def _play(self) -> None:
        self._log.clear()
        load = self._forms.load.values
        self._bench.slo = load["slo"]
        self._bench.run(load["scenario"], rate=load["rate"], slo=load["slo"])

    def drop(self) -> None:
        """Send one long prompt."""
        load = self._forms.load.values
        self._bench.slo = load["slo"]
        self._bench.drop_long(load["long_tokens"])

    def turn(self, changes: dict[str, Any]) -> None:
        """Turn knobs; where the engine refuses, those in force are shown again."""
        try:
            self.revision = self._bench.knobs(**changes)
        except Exception:
            self._forms.knobs.show(self._bench.engine.knobs)
            raise

    def compare_policies(self) -> None:
        """Begin, or end what goes on."""
        if self._actions.going("policies"):
            self._stop_comparing = True
            self._actions.run("load", self._bench.stop_load)
            return
        self._stop_comparing = False
        self._log.clear()
        self._actions.run("policies", self._play_policies)

    def _play_policies(self) -> None:
        try:
            self._forms.policies.run(self._bench, lambda: self._stop_comparing)
        except Exception:
            if not self._stop_comparing:
                raise

    def as_shown(self, do: Callable[[], None]) -> None:
        """What is shown is what is meant, also before an engine was started with it."""
        form = self._forms.start
        if form.config is not None and not form.disabled:
            self.shown_config = self._bench.configure(**form.fields)
        do()
