"""A form: one widget for all its parts, since a page that loads pays for every widget of ipywidgets."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from typing import Any

import anywidget
import ipywidgets as widgets
import traitlets

from workbench.i18n import speaking, spoken, translate
from workbench.ui.live.busy import answer_while_busy
from workbench.ui.panel.parts import Pane, Part

_TEXTS = ("label", "hint", "title", "text", "placeholder")  # fields of parts that people read


class Form(anywidget.AnyWidget):
    """Draws parts in the page and takes what a person does to them, also while a cell runs.

    All methods may be called from any thread.

    Args:
        parts: from top to bottom; their ids must differ.
        layout: shared with other widgets, since each is one more for the page to load.
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)
    tree: traitlets.List[dict[str, Any]] = traitlets.List().tag(sync=True)

    def __init__(self, parts: Sequence[Part], layout: widgets.Layout | None = None) -> None:
        self._publishing = threading.RLock()
        self._together, self._changed = 0, False
        self._lang = spoken()  # also in the threads that a person's doing comes in
        self.parts = tuple(parts)
        self._by_id = {part.id: part for top in self.parts for part in top.all()}
        super().__init__(tree=self._now(), **({} if layout is None else {"layout": layout}))
        for part in self._by_id.values():
            part.join(self)
        self.on_msg(self._take)
        answer_while_busy(self)

    @traitlets.default("_esm")
    def _default_esm(self) -> str:
        return _read("form.js")

    @traitlets.default("_css")
    def _default_css(self) -> str:
        return _read("form.css")

    def publish(self) -> None:
        """Tell the page what its parts are now."""
        with self._publishing:
            self._changed = True
            if not self._together:
                self._changed = False
                self.tree = self._now()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Within it, nothing is told; afterwards all at once."""
        with self._publishing:
            self._together += 1
        try:
            yield
        finally:
            with self._publishing:
                self._together -= 1
                if self._changed:
                    self.publish()

    def _now(self) -> list[dict[str, Any]]:
        with speaking(self._lang):
            return [_translated(part.tree()) for part in self.parts]

    def _take(self, _: Any, message: Any, __: Any) -> None:
        with speaking(self._lang):
            self._act(message)

    def _act(self, message: Any) -> None:
        part = self._by_id.get(str(message.get("id"))) if isinstance(message, dict) else None
        if isinstance(part, Pane):
            self.send({"id": part.id, "markup": part.markup, "version": part.tree()["version"]})
        elif part is not None:
            part.take(message)


def _translated(tree: dict[str, Any]) -> dict[str, Any]:
    """A part as the page gets it, in the language that is spoken; what was put together is so already."""
    if spoken() == "en":
        return tree
    told = tree | {name: translate(tree[name]) for name in _TEXTS if isinstance(tree.get(name), str)}
    return told | ({"parts": [_translated(part) for part in tree["parts"]]} if "parts" in tree else {})


@cache
def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
