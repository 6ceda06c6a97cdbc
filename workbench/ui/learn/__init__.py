"""Predictions, exercises and quizzes in a page: a guess to draw, choices to press."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from workbench.learn.shown import Shown


def widget_bundle(part: Shown) -> dict[str, Any]:
    """What a notebook shows of a part in place of its text; empty without a kernel or without anywidget.

    A part has one widget, however often it is shown.
    """
    try:
        from IPython.core.getipython import get_ipython

        if not hasattr(get_ipython(), "kernel"):
            return {}
        from workbench.ui.learn.widgets import widget_of
    except ImportError:
        return {}
    bundle, _ = widget_of(part)._repr_mimebundle_() or ({}, {})
    return {kind: data for kind, data in bundle.items() if kind not in ("text/plain", "text/html")}
