"""Controls: a part with a value, that tells what a person changes and not what is shown from code."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Iterable
from typing import Any

from workbench.ui.panel.parts import Part

Changed = Callable[[], None]


class Control(Part):
    """One field on screen; here one whose value is the page's own, as a check box or a number has.

    Attributes:
        name: the field's name.
        label: what stands before it, with its unit.
        default: the value of :meth:`reset`.

    Args:
        kind: how the page draws it: ``check``, ``number``, ``text``, ``choice``, ``slider`` or ``toggle``.
        name: the field's name.
        label: what stands before it.
        hint: its tooltip.
        default: what it begins with.
        **fields: what the page needs to draw it.
    """

    def __init__(self, kind: str, name: str, label: str, hint: str, default: Any, **fields: Any) -> None:
        super().__init__(kind, name, label=label, hint=hint, value=None, heard=None, **fields)
        self.name, self.label, self.default = name, label, default
        self._callbacks: list[Changed] = []
        self.show(default)

    @property
    def value(self) -> Any:
        """The value for the configuration; one that cannot be read goes there as it is, to be refused by name."""
        return self._read(self.raw)

    @property
    def raw(self) -> Any:
        """The value as the page has it."""
        return self._fields["value"]

    @property
    def kind(self) -> str:
        """How the page draws it."""
        return str(self._fields["kind"])

    def show(self, value: Any) -> None:
        """Set the value without telling anybody."""
        self.change(value=self._written(value))

    def reset(self) -> None:
        """Show the default."""
        self.show(self.default)

    def observe(self, callback: Changed) -> None:
        """Call back after each change that a person makes."""
        self._callbacks.append(callback)

    def put(self, raw: Any) -> None:
        """As if a person had put this in, as the page has it."""
        self.take({"value": raw})

    def take(self, message: dict[str, Any]) -> None:
        """A person changed it; what was on its way when it was disabled is put back."""
        raw, tag = message.get("value"), message.get("tag")
        if self.disabled or not self._fits(raw):
            self.change(heard=tag)
            return
        told = raw != self.raw
        self.change(value=raw, heard=tag)
        if told:
            for callback in self._callbacks:
                callback()

    def _fits(self, raw: Any) -> bool:
        """Whether the page may send this."""
        if self.kind in ("check", "toggle"):
            return isinstance(raw, bool)
        low, high = self._fields.get("min", -math.inf), self._fields.get("max", math.inf)
        return isinstance(raw, int | float) and not isinstance(raw, bool) and low <= raw <= high

    def _read(self, raw: Any) -> Any:
        return raw

    def _written(self, value: Any) -> Any:
        return value


class Choice(Control):
    """One of several values, a drop-down or a slider that stops at each; the page knows their places alone."""

    def __init__(
        self,
        kind: str,
        name: str,
        label: str,
        hint: str,
        default: Any,
        options: Iterable[Any],
        text: Callable[[Any], str],
    ) -> None:
        self._text = text
        self._options: tuple[Any, ...] = tuple(options)
        super().__init__(kind, name, label, hint, default, options=[text(one) for one in self._options])

    @property
    def options(self) -> tuple[Any, ...]:
        """What can be chosen."""
        return self._options

    @property
    def shown(self) -> str:
        """How the value reads."""
        return str(self._fields["options"][self.raw])

    def offer(self, options: Iterable[Any], value: Any) -> None:
        """Offer other values, and show one of them, without telling anybody."""
        self._options = tuple(inserted(options, value))
        # At once: in between, the page would show a value that is not in force.
        self.change(options=[self._text(one) for one in self._options], value=self._options.index(value))

    def blank(self, text: str) -> None:
        """Show a text in place of whatever value, since the true one is not known; an empty one shows values again."""
        self.change(options=[text or self._text(one) for one in self._options])

    def show(self, value: Any) -> None:
        """Set the value without telling anybody; one that is not offered is shown as it is, not as the nearest."""
        if value in self._options:
            super().show(value)
        else:
            self.offer(self._options, value)

    def choose(self, value: Any) -> None:
        """As if a person had chosen it."""
        self.put(self._options.index(value))

    def _fits(self, raw: Any) -> bool:
        return isinstance(raw, int) and not isinstance(raw, bool) and 0 <= raw < len(self._options)

    def _read(self, raw: Any) -> Any:
        return self._options[raw]

    def _written(self, value: Any) -> Any:
        return self._options.index(value)


class Entry(Control):
    """Free text that stands for a value; empty is the default where there is one."""

    def __init__(
        self, name: str, label: str, hint: str, default: Any, read: Callable[[str], Any], **fields: Any
    ) -> None:
        self._reader = read
        super().__init__("text", name, label, hint, default, **fields)

    def _fits(self, raw: Any) -> bool:
        return isinstance(raw, str)

    def _read(self, raw: Any) -> Any:
        return self._reader(raw.strip())

    def _written(self, value: Any) -> Any:
        if value is None:
            return ""
        return shlex.join(value) if isinstance(value, tuple | list) else str(value)


def inserted(options: Iterable[Any], value: Any) -> list[Any]:
    """The options with ``value`` among them, in order where they are numbers."""
    found = list(options)
    if value in found:
        return found
    place = next((i for i, option in enumerate(found) if isinstance(option, int | float) and option > value), None)
    place = len(found) if place is None else place
    return [*found[:place], value, *found[place:]]
