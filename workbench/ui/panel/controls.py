"""Controls: a widget with a value of its own, that tells what a person changes and not what is shown from code."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

Changed = Callable[[], None]


class Control:
    """One field on screen.

    ipywidgets reads a chosen None as "nothing chosen", so choices are kept apart from the widget's own values.

    Attributes:
        name: the field's name.
        label: what stands before it, with its unit.
        widget: what to display.
        default: the value of :meth:`reset`.
    """

    def __init__(self, name: str, label: str, widget: Any, default: Any) -> None:
        self.name, self.label, self.widget, self.default = name, label, widget, default
        self._callbacks: list[Changed] = []
        self._quiet = threading.local()  # set in a thread that shows something; a person's change comes in another
        widget.observe(self._changed, names="value")

    @property
    def value(self) -> Any:
        """The value for the configuration; one that cannot be read goes there as it is, to be refused by name."""
        return self.widget.value

    def show(self, value: Any) -> None:
        """Set the value without telling anybody."""
        with self._silently():
            self._put(value)

    def reset(self) -> None:
        """Show the default."""
        self.show(self.default)

    def observe(self, callback: Changed) -> None:
        """Call back after each change that a person makes."""
        self._callbacks.append(callback)

    @property
    def disabled(self) -> bool:
        """Whether it can be changed on screen."""
        return bool(self.widget.disabled)

    @disabled.setter
    def disabled(self, off: bool) -> None:
        self.widget.disabled = off

    def _put(self, value: Any) -> None:
        self.widget.value = value

    @contextmanager
    def _silently(self) -> Iterator[None]:
        before = getattr(self._quiet, "on", False)
        self._quiet.on = True
        try:
            yield
        finally:
            self._quiet.on = before

    def _changed(self, _change: object) -> None:
        if not getattr(self._quiet, "on", False):
            for callback in self._callbacks:
                callback()


class Choice(Control):
    """One of several values: a drop-down, or a slider that stops at each."""

    def __init__(
        self, name: str, label: str, widget: Any, default: Any, options: Iterable[Any], text: Callable[[Any], str]
    ) -> None:
        self._text = text
        super().__init__(name, label, widget, default)
        self.offer(options, default)

    @property
    def options(self) -> tuple[Any, ...]:
        """What can be chosen."""
        return self._options

    @property
    def value(self) -> Any:
        """The chosen value."""
        return self._options[self.widget.index]

    def offer(self, options: Iterable[Any], value: Any) -> None:
        """Offer other values, and show one of them, without telling anybody."""
        self._options = tuple(options)
        # One message with labels and index: between two, the browser would show a value that is not in force.
        with self._silently(), self.widget.hold_sync():
            self.widget.options = [(self._text(option), place) for place, option in enumerate(self._options)]
            self._put(value)

    def _put(self, value: Any) -> None:
        if value not in self._options:  # set from code: shown as it is, not as the nearest
            self.offer(inserted(self._options, value), value)
            return
        self.widget.index = self._options.index(value)


class Entry(Control):
    """Free text that stands for a value; empty is the default where there is one."""

    def __init__(self, name: str, label: str, widget: Any, default: Any, read: Callable[[str], Any]) -> None:
        self._read = read
        super().__init__(name, label, widget, default)
        self.reset()

    @property
    def value(self) -> Any:
        """What the text stands for."""
        return self._read(self.widget.value.strip())

    def _put(self, value: Any) -> None:
        self.widget.value = _written(value)


def _written(value: Any) -> str:
    if value is None:
        return ""
    return shlex.join(value) if isinstance(value, tuple | list) else str(value)


def inserted(options: Iterable[Any], value: Any) -> list[Any]:
    """The options with ``value`` among them, in order where they are numbers."""
    found = list(options)
    if value in found:
        return found
    place = next((i for i, option in enumerate(found) if isinstance(option, int) and option > value), len(found))
    return [*found[:place], value, *found[place:]]
