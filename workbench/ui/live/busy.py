"""Callbacks of a widget that run while a cell does."""

from __future__ import annotations

import ipywidgets


def answer_while_busy(widget: ipywidgets.Widget) -> bool:
    """Let messages from the page to this widget be handled while the kernel runs a cell, in a thread of their own.

    JupyterLab (4.4 and newer) sends them to a subshell of the kernel, but ipykernel (7.4) hands them to the shell that
    made the widget, which is busy with the cell. This lets JupyterLab's choice stand. The callbacks of the widget must
    then hold against running beside a cell.

    Returns:
        Whether the kernel could be told; where it could not, messages wait for the end of the cell.
    """
    comm = widget.comm
    if not hasattr(comm, "_reply_subshell_for"):
        return False
    comm._reply_subshell_for = _as_sent
    return True


def _as_sent(_: object, subshell: str | None) -> str | None:
    """The shell that the page named."""
    return subshell
