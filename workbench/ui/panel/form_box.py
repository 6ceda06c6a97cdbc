"""A form in a page that begins one thing and ends it, as the planner's and the tuner's do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ipywidgets as widgets

from workbench.i18n import speaking, told_error
from workbench.ui.panel.actions import Actions
from workbench.ui.panel.form import Form

_shown: dict[type, FormBox] = {}  # one of each kind in a kernel: a cell that runs twice replaces it


class FormBox(widgets.Box):
    """One form; showing another of its kind closes it and ends what it does.

    Args:
        make: makes the form, which has ``parts``, a ``button``, and ``run``, ``stop``, ``fit`` and ``tell``.
        what: its button begins, as :class:`Actions` names it.
        lang: language, see :mod:`workbench.i18n`; none takes the one that is spoken.

    Attributes:
        form: as it was made.
    """

    form: Any

    def __init__(self, make: Callable[[], Any], what: str, lang: str | None) -> None:
        before, _shown[type(self)] = _shown.get(type(self)), self
        if before is not None:
            before.close()
        self._what = what
        with speaking(lang):
            self.form = make()
            self._actions = Actions(lambda error: self.form.tell(told_error(error)), self._fit)
            layout = widgets.Layout()
            self._widget = Form(self.form.parts, layout)
            super().__init__([self._widget], layout=layout)
            self.add_class("wb-panel")
            self.form.button.on_press(self._actions.guarded(self._press))
            self._fit()

    def close(self) -> None:
        """End what goes on, and take it off the page."""
        if not hasattr(self, "_widget"):  # it was refused, and Python gives it up
            return
        self.form.stop()
        for widget in (self._widget, self.layout):
            widget.close()
        super().close()

    def wait(self, timeout_s: float = 3600.0) -> None:
        """Wait until what goes on has ended; for scripts and tests."""
        self._actions.wait(timeout_s)

    def _press(self) -> None:
        """Begin, or end what goes on."""
        if self._actions.going(self._what):
            self.form.stop()
        else:
            self._actions.run(self._what, self.form.run)

    def _fit(self) -> None:
        self.form.fit(going=self._actions.going(self._what))
