"""A drawer: a button that shows and hides what belongs to it; unlike ipywidgets' accordion it works with a keyboard."""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

_SHUT, _OPEN = "▸", "▾"  # not icons of a font, which a dashboard without a network lacks


class Drawer:
    """Closed until it is opened.

    Attributes:
        widget: what to display.
        button: the toggle; its description is the title.
        content: what is shown and hidden.
    """

    def __init__(self, title: str, content: widgets.DOMWidget, tooltip: str = "") -> None:
        self.button = widgets.ToggleButton(value=False, tooltip=tooltip or title, layout=widgets.Layout(width="auto"))
        self.button.add_class("wb-drawer")
        self.content, self._title = content, title
        self.button.observe(self._move, names="value")
        self.widget = widgets.VBox([self.button, content])
        self._move(None)

    @property
    def title(self) -> str:
        """What stands on the button."""
        return self._title

    @title.setter
    def title(self, text: str) -> None:
        self._title = text
        self._move(None)

    @property
    def opened(self) -> bool:
        """Whether the content is shown."""
        return bool(self.button.value)

    def _move(self, _change: Any) -> None:
        self.button.description = f"{_OPEN if self.opened else _SHUT} {self._title}"
        self.content.layout.display = None if self.opened else "none"
