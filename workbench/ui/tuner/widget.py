"""The tuner's widget: its form in a page, one in a kernel; what takes time runs in a thread."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import ipywidgets as widgets

from workbench.errors import InputError, in_words
from workbench.i18n import marked, speaking
from workbench.session import Workbench
from workbench.ui.panel.actions import Actions
from workbench.ui.panel.form import Form
from workbench.ui.tuner.form import TuneForm

_LOOK_S = 0.5
_BUSY = marked("A run goes on: stop the load first")
_shown: Tuner | None = None  # there is one in a kernel: a cell that runs twice replaces it


class Tuner(widgets.Box):
    """Asks for load, objective, limits and space; shows the study as it goes, and its answer.

    Showing another closes this one and stops its study; what was played is kept.

    Args:
        bench: whose engine plays; while it plays something else, as from the panel beside it, no study can begin.
        runs: folder of the runs and of the studies; by default ``WORKBENCH_RUNS`` or ``runs``.
        lang: language, see :mod:`workbench.i18n`; none takes the one that is spoken.
        **start_up: without one, start-up fields that go before the scenario's, such as ``engine="simulated"``.

    Raises:
        InputError: a start-up field is given beside a workbench, which has its own.
    """

    def __init__(
        self, bench: Workbench | None = None, *, runs: Path | None = None, lang: str | None = None, **start_up: Any
    ) -> None:
        global _shown
        if bench is not None and start_up:
            raise InputError("start-up fields", ", ".join(start_up), "none beside a workbench", "use wb.configure(...)")
        before, _shown = _shown, self
        if before is not None:
            before.close()
        self._bench = bench
        with speaking(lang):
            self._make(start_up, runs)
        if bench is not None:
            threading.Thread(target=self._follow, name="tuner", daemon=True).start()

    def _make(self, start_up: dict[str, Any], runs: Path | None) -> None:
        self.form = TuneForm(self._bench, start_up, runs)
        self._actions = Actions(lambda error: self.form.tell(in_words(error)), self._fit)
        self._closed = threading.Event()
        layout = widgets.Layout()
        self._widget = Form(self.form.parts, layout)
        super().__init__([self._widget], layout=layout)
        self.add_class("wb-panel")
        self.form.button.on_press(self._actions.guarded(self._press))
        self.form.report.on_press(self._actions.guarded(lambda: self._actions.run("report", self.form.save)))
        self._fit()

    def close(self) -> None:
        """Stop what goes on, and take it off the page."""
        if not hasattr(self, "_widget"):  # it was refused, and Python gives it up
            return
        self._closed.set()
        self.form.stop()
        for widget in (self._widget, self.layout):
            widget.close()
        super().close()

    def wait(self, timeout_s: float = 3600.0) -> None:
        """Wait until the study that goes on has ended; for scripts and tests."""
        self._actions.wait(timeout_s)

    def _press(self) -> None:
        """Begin, or stop what goes on."""
        if self._actions.going("tune"):
            self.form.stop()
        else:
            self._actions.run("tune", self.form.run)

    def _fit(self) -> None:
        going = self._actions.going("tune")
        busy = self._bench is not None and self._bench.playing and not going
        self.form.fit(going=going, why_not=_BUSY if busy else "")

    def _follow(self) -> None:
        """See when the panel beside it plays."""
        look = self._actions.guarded(self._fit)
        while not self._closed.wait(_LOOK_S):
            look()
