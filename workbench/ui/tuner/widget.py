"""The tuner's widget: its form in a page, one in a kernel; what takes time runs in a thread."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from workbench.errors import InputError
from workbench.i18n import marked
from workbench.session import Workbench
from workbench.ui.panel.form_box import FormBox
from workbench.ui.tuner.form import TuneForm

_LOOK_S = 0.5
_BUSY = marked("A run goes on: stop the load first")


class Tuner(FormBox):
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

    form: TuneForm

    def __init__(
        self, bench: Workbench | None = None, *, runs: Path | None = None, lang: str | None = None, **start_up: Any
    ) -> None:
        if bench is not None and start_up:
            raise InputError("start-up fields", ", ".join(start_up), "none beside a workbench", "use wb.configure(...)")
        self._bench, self._closed = bench, threading.Event()
        super().__init__(lambda: TuneForm(bench, start_up, runs), "tune", lang)
        self.form.report.on_press(self._actions.guarded(lambda: self._actions.run("report", self.form.save)))
        if bench is not None:
            threading.Thread(target=self._follow, name="tuner", daemon=True).start()

    def close(self) -> None:
        """Stop what goes on, and take it off the page."""
        if hasattr(self, "_closed"):  # not where it was refused, and Python gives it up
            self._closed.set()
        super().close()

    def _fit(self) -> None:
        going = self._actions.going("tune")
        busy = self._bench is not None and self._bench.playing and not going
        self.form.fit(going=going, why_not=_BUSY if busy else "")

    def _follow(self) -> None:
        """See when the panel beside it plays."""
        look = self._actions.guarded(self._fit)
        while not self._closed.wait(_LOOK_S):
            look()
