"""What is handed over to others: a saved run, figures beside the run before, code, and a command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from typing import Any, Literal

from workbench.i18n import marked, translate
from workbench.session import Workbench
from workbench.ui.panel.parts import Pane

_NOTE = marked("One run each: a difference holds the machine's noise as well.")


class HandOver:
    """Does it, and shows what came of it.

    Attributes:
        pane: to be put into a form.

    Args:
        bench: whose runs, code and command.
        load: what the load form says, see :attr:`workbench.ui.panel.load.LoadForm.values`.
        copy: puts text on the clipboard.
    """

    def __init__(self, bench: Workbench, load: Callable[[], Mapping[str, Any]], copy: Callable[[str], object]) -> None:
        self._bench, self._load, self._copy = bench, load, copy
        self.pane = Pane("result", "wb-result")

    def save(self) -> None:
        """Save the run with its report."""
        self.pane.markup = translate("Saving the run and writing its report …")
        try:
            saved = self._bench.save_run()
        except Exception:
            self.pane.markup = ""
            raise
        self.pane.markup = f"{translate('Saved with its report:')} <code>{escape(str(saved.folder))}</code>"

    def report(self) -> None:
        """Write the run's report."""
        self.pane.markup = translate("Writing the report …")
        try:
            path = self._bench.report()
        except Exception:
            self.pane.markup = ""
            raise
        self.pane.markup = f"{translate('Report:')} <code>{escape(str(path))}</code>"

    def side_by_side(self) -> None:
        """Compare with the run before."""
        shown = self._bench.compare().to_html(float_format=lambda value: f"{value:,.2f}", na_rep="n/a", border=0)
        self.pane.markup = f'<div class="wb-table">{shown}</div>{translate(_NOTE)}'

    def code(self) -> None:
        """Copy the Python lines."""
        load = self._load()
        self._copy(self._bench.code(load["scenario"], rate=load["rate"], slo=load["slo"]))

    def command(self, server: Literal["vllm", "sglang"] = "vllm") -> None:
        """Copy the plain command."""
        self._copy(self._bench.serve_command(server))
