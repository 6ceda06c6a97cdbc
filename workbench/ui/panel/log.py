"""The log drawer: what went wrong in the panel, and the engine's last lines."""

from __future__ import annotations

import threading
import time
from collections import deque
from html import escape

from workbench.i18n import counted, marked, told_error, translate
from workbench.ui.panel.parts import Button, Drawer, Pane, Text, row

_ERRORS = 50  # kept
_TITLE = marked("Log")


class LogDrawer:
    """A drawer that is closed until it is opened; errors also stand above it until they are dismissed.

    Attributes:
        drawer: to be put into a form.
        alert: the newest error, announced to screen readers; hidden when there is none. Of another form.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._errors: deque[str] = deque(maxlen=_ERRORS)
        self._count = 0
        self._lines: tuple[str, ...] = ()
        self._text = Pane("log_text", "wb-log")
        self._dismiss = Button("dismiss", "Dismiss", "Hide this message; it stays in the log")
        self._dismiss.on_press(self.clear)
        self._message = Text("trouble_text", "alert")
        self.alert = row("trouble", [self._message, self._dismiss], "wb-trouble")
        self.alert.hidden = True
        self.drawer = Drawer("log", _TITLE, [self._text], "Errors so far, and the engine's last lines")
        self._draw()

    @property
    def errors(self) -> tuple[str, ...]:
        """The errors so far, oldest first."""
        return tuple(self._errors)

    def tell(self, error: BaseException) -> None:
        """Show an error, from any thread."""
        words = told_error(error)
        with self._lock:
            self._count += 1
            self._errors.append(f"{time.strftime('%H:%M:%S')} {words}")
        with self.alert.together():
            self._message.text, self.alert.hidden = words, False
        self._draw()

    def show(self, lines: tuple[str, ...]) -> None:
        """Show the engine's last lines; nothing happens when they are those already shown."""
        if lines != self._lines:
            self._lines = lines
            self._draw()

    def clear(self) -> None:
        """Take the message away, for instance since the next attempt began; the log keeps it."""
        with self.alert.together():
            self._message.text, self.alert.hidden = "", True

    def _draw(self) -> None:
        with self._lock:
            errors, count = list(self._errors), self._count
        parts = []
        if errors:
            parts.append(f"<b>{translate('Errors')}</b><pre>" + escape("\n".join(errors)) + "</pre>")
        lines = escape("\n".join(self._lines)) if self._lines else translate("the engine has said nothing yet")
        parts.append(f"<b>{translate('Engine, last lines')}</b><pre>{lines}</pre>")
        with self.drawer.together():
            self._text.markup = "".join(parts)
            self.drawer.title = counted("Log · {n} error", "Log · {n} errors", count) if count else _TITLE
