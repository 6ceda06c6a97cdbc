"""Parts of a form: what the page draws, held here as plain data; a part that changes has its form told again.

A part lives as long as its form. The page keeps the element of a part whatever happens to its fields, so nothing is
replaced under a person's hand.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol


class Holder(Protocol):
    """What a part tells of its changes: a form."""

    def publish(self) -> None:
        """Tell the page."""

    def together(self) -> AbstractContextManager[None]:
        """Tell the page once, at the end."""


class Part:
    """One thing in a form.

    Attributes:
        id: unique in its form.
        parts: what stands in it.

    Args:
        kind: how the page draws it, see ``form.js``.
        name: its id.
        parts: what stands in it.
        **fields: what the page needs to draw it, as plain JSON.
    """

    def __init__(self, kind: str, name: str, parts: Sequence[Part] = (), **fields: Any) -> None:
        self.id, self.parts = name, tuple(parts)
        self._fields: dict[str, Any] = {"kind": kind, "id": name, **fields}
        self._holder: Holder | None = None
        self._changing = threading.Lock()  # a person's change and the panel's own come in different threads

    def join(self, holder: Holder) -> None:
        """Belong to a form."""
        self._holder = holder

    def all(self) -> Iterator[Part]:
        """The part and all that stand in it."""
        yield self
        for part in self.parts:
            yield from part.all()

    def tree(self) -> dict[str, Any]:
        """The part as the page gets it."""
        inside = {"parts": [part.tree() for part in self.parts]} if self.parts else {}
        return self._fields | inside

    def change(self, **fields: Any) -> None:
        """Set what the page draws."""
        with self._changing:
            if all(self._fields.get(name) == value for name, value in fields.items()):
                return
            self._fields = self._fields | fields  # anew: another thread may be reading the one before
        if self._holder is not None:
            self._holder.publish()

    def together(self) -> AbstractContextManager[None]:
        """Within it, the page hears of several changes as one."""
        return self._holder.together() if self._holder is not None else nullcontext()

    def take(self, message: dict[str, Any]) -> None:
        """Take what a person did to it."""

    @property
    def hidden(self) -> bool:
        """Whether it is not shown."""
        return bool(self._fields.get("hidden"))

    @hidden.setter
    def hidden(self, hidden: bool) -> None:
        self.change(hidden=hidden)

    @property
    def disabled(self) -> bool:
        """Whether it can be changed on screen."""
        return bool(self._fields.get("off"))

    @disabled.setter
    def disabled(self, off: bool) -> None:
        self.change(off=off)

    @property
    def hint(self) -> str:
        """Its tooltip, which a screen reader also speaks."""
        return str(self._fields.get("hint") or "")

    @hint.setter
    def hint(self, text: str) -> None:
        self.change(hint=text)


class Text(Part):
    """A line of text: ``note``, or ``alert``, which a screen reader speaks at once. Hidden while it is empty."""

    def __init__(self, name: str, kind: str = "note") -> None:
        super().__init__(kind, name, text="")

    @property
    def text(self) -> str:
        """What it says; never markup."""
        return str(self._fields["text"])

    @text.setter
    def text(self, text: str | None) -> None:
        self.change(text=text or "")


class Button(Part):
    """A button.

    Args:
        name: its id.
        text: what stands on it.
        hint: its tooltip.
        look: ``primary``, ``success``, ``warning`` or none of these.
    """

    def __init__(self, name: str, text: str, hint: str, look: str = "") -> None:
        super().__init__("button", name, text=text, hint=hint, look=look)
        self._pressed: list[Callable[[], object]] = []

    @property
    def text(self) -> str:
        """What stands on it."""
        return str(self._fields["text"])

    @text.setter
    def text(self, text: str) -> None:
        self.change(text=text)

    def on_press(self, do: Callable[[], object]) -> None:
        """Do this when it is pressed."""
        self._pressed.append(do)

    def press(self) -> None:
        """As if a person had pressed it."""
        for do in self._pressed:
            do()

    def take(self, _message: dict[str, Any]) -> None:
        """A person pressed it; a press from before it was disabled does nothing."""
        if not self.disabled:
            self.press()


class Drawer(Part):
    """A button that shows and hides what belongs to it; the page draws that when it is first opened."""

    def __init__(self, name: str, title: str, parts: Sequence[Part], hint: str = "") -> None:
        super().__init__("drawer", name, parts, title=title, hint=hint or title)

    @property
    def title(self) -> str:
        """What stands on the button."""
        return str(self._fields["title"])

    @title.setter
    def title(self, text: str) -> None:
        self.change(title=text)


class Pane(Part):
    """Markup that the page asks for once it is seen: charts and logs are no part of what a page loads at first."""

    def __init__(self, name: str, look: str = "") -> None:
        super().__init__("pane", name, version=0, look=look)
        self._markup = ""

    @property
    def markup(self) -> str:
        """What it shows. Values in it must have been escaped."""
        return self._markup

    @markup.setter
    def markup(self, markup: str) -> None:
        if markup != self._markup:
            self._markup = markup
            self.change(version=int(self._fields["version"]) + 1, empty=not markup)


def section(name: str, title: str, hint: str, parts: Sequence[Part]) -> Part:
    """Parts under a heading."""
    return Part("section", name, parts, title=title, hint=hint)


def row(name: str, parts: Sequence[Part], look: str = "") -> Part:
    """Parts side by side."""
    return Part("row", name, parts, look=look)
