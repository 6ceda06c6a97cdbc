"""The planner in a notebook: ``Planner()`` as a cell's last line; everything that takes time runs in a thread."""

from __future__ import annotations

import ipywidgets as widgets

from workbench.errors import in_words
from workbench.i18n import speaking
from workbench.ui.panel.actions import Actions
from workbench.ui.panel.form import Form
from workbench.ui.panel.plan_form import PlanForm

_shown: Planner | None = None  # there is one in a kernel: a cell that runs twice replaces it


class Planner(widgets.Box):
    """Asks for hardware, model, traffic and SLO; shows capacity, charts and the ``vllm serve`` command.

    Showing another closes this one and ends what it does.

    Args:
        lang: language, see :mod:`workbench.i18n`; none takes the one that is spoken.
    """

    def __init__(self, lang: str | None = None) -> None:
        global _shown
        before, _shown = _shown, self
        if before is not None:
            before.close()
        with speaking(lang):
            self._make()

    def _make(self) -> None:
        self.form = PlanForm()
        self._actions = Actions(lambda error: self.form.tell(in_words(error)), self._fit)
        layout = widgets.Layout()
        self._widget = Form(self.form.parts, layout)
        super().__init__([self._widget], layout=layout)
        self.add_class("wb-panel")
        self.form.button.on_press(self._actions.guarded(self._press))
        self._fit()

    def close(self) -> None:
        """End what goes on, and take it off the page."""
        self.form.stop()
        for widget in (self._widget, self.layout):
            widget.close()
        super().close()

    def wait(self, timeout_s: float = 600.0) -> None:
        """Wait until the plan that goes on is there; for scripts and tests."""
        self._actions.wait(timeout_s)

    def _press(self) -> None:
        """Begin, or end what goes on."""
        if self._actions.going("plan"):
            self.form.stop()
        else:
            self._actions.run("plan", self.form.run)

    def _fit(self) -> None:
        self.form.fit(going=self._actions.going("plan"))
