"""The log drawer: what went wrong in the panel, and the engine's last lines."""

from __future__ import annotations

import threading
import time
from collections import deque
from html import escape

import ipywidgets as widgets

from workbench.ui.panel.actions import in_words
from workbench.ui.panel.drawer import Drawer

_ERRORS = 50  # kept
_TITLE = "Log"


class LogDrawer:
    """A drawer that is closed until it is opened; errors also stand above it until they are dismissed.

    Attributes:
        widget: to be put into the panel.
        drawer: the drawer in it.
        alert: the newest error, announced to screen readers; empty when there is none.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._errors: deque[str] = deque(maxlen=_ERRORS)
        self._count = 0
        self._lines: tuple[str, ...] = ()
        self._text = widgets.HTML()
        self._text.add_class("wb-log")
        self._dismiss = widgets.Button(description="Dismiss", tooltip="Hide this message; it stays in the log")
        self._dismiss.on_click(lambda _: self._hide())
        self._message = widgets.HTML(layout=widgets.Layout(flex="1 1 auto"))
        self.alert = widgets.HBox([self._message, self._dismiss])
        self.alert.add_class("wb-trouble")
        self.alert.layout.display = "none"
        self.drawer = Drawer(_TITLE, self._text, "Errors so far, and the engine's last lines")
        self.widget = self.drawer.widget
        self._draw()

    @property
    def errors(self) -> tuple[str, ...]:
        """The errors so far, oldest first."""
        return tuple(self._errors)

    def tell(self, error: BaseException) -> None:
        """Show an error, from any thread."""
        words = in_words(error)
        with self._lock:
            self._count += 1
            self._errors.append(f"{time.strftime('%H:%M:%S')} {words}")
        self._message.value = f'<div role="alert" class="wb-error">{escape(words)}</div>'
        self.alert.layout.display = "flex"
        self._draw()

    def show(self, lines: tuple[str, ...]) -> None:
        """Show the engine's last lines; nothing happens when they are those already shown."""
        if lines != self._lines:
            self._lines = lines
            self._draw()

    def clear(self) -> None:
        """Take the message away, for instance since the next attempt began; the log keeps it."""
        self._hide()

    def _hide(self) -> None:
        self._message.value = ""
        self.alert.layout.display = "none"

    def _draw(self) -> None:
        with self._lock:
            errors, count = list(self._errors), self._count
        parts = []
        if errors:
            parts.append("<b>Errors</b><pre>" + escape("\n".join(errors)) + "</pre>")
        lines = escape("\n".join(self._lines)) if self._lines else "the engine has said nothing yet"
        parts.append(f"<b>Engine, last lines</b><pre>{lines}</pre>")
        self._text.value = "".join(parts)
        self.drawer.title = f"{_TITLE} · {count} error{'' if count == 1 else 's'}" if count else _TITLE
