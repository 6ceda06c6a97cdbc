"""What every part of a lesson is in a notebook: a widget where there is a page with a kernel, text everywhere else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from html import escape
from typing import Any


class Shown(ABC):
    """Something that a notebook shows as the last value of a cell.

    A page without JavaScript, an exported page and a terminal get :attr:`text`, which says how to answer from code.

    Attributes:
        widget: what draws it in a page, once it was shown in one.
    """

    widget: Any = None

    @property
    @abstractmethod
    def text(self) -> str:
        """All of it, as lines of plain text."""

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f'<div class="wb-learn-text" style="white-space:pre-wrap;max-width:90ch">{escape(self.text)}</div>'

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """The widget beside the text; of the two a page takes what it can draw."""
        from workbench.ui.learn import widget_bundle  # here, since only notebooks have widgets

        return {"text/plain": self.text, "text/html": self._repr_html_(), **widget_bundle(self)}
