"""A notebook in JupyterLab, driven as a person would.

with Lab(folder) as lab, chromium() as browser:
    with Notebook(browser, lab, ["x = 1"]) as notebook:
        notebook.run(0)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Self
from urllib.parse import urlsplit

from benchmarks.parts.lab import Lab

# The notebook, whether its tab is in front or not.
PANEL = "[...(window.jupyterapp?.shell.widgets('main') ?? [])].find((tab) => tab.content?.notebookConfig)"
# Runs a cell by its number and answers when it is done, or at once.
_RUN = """async ([number, wait]) => {
    const app = window.jupyterapp;
    app.shell.currentWidget.content.activeCellIndex = number;
    const done = app.commands.execute("notebook:run-cell");
    if (wait) await done;
}"""
# Runs code in the kernel beside the notebook, and gives back what it printed and its error.
_EXECUTE = (
    f"async (code) => {{ const kernel = {PANEL}.sessionContext.session.kernel;"
    + """
    const future = kernel.requestExecute({ code, store_history: false });
    let printed = "";
    let error = null;
    future.onIOPub = ({ header, content }) => {
        if (header.msg_type === "stream") printed += content.text;
        if (header.msg_type === "error") error = `${content.ename}: ${content.evalue}`;
    };
    await future.done;
    return [printed, error];
}"""
)


class Notebook:
    """One notebook, open in a page of its own.

    Attributes:
        page: the Playwright page.
        complaints: console errors, uncaught errors, and requests to other hosts than 127.0.0.1.

    Args:
        browser: from :func:`benchmarks.parts.chromium.chromium`.
        lab: where it is opened.
        cells: code of its cells.
        name: of the file, without ending.
        context: options of the browser context (``color_scheme``, ``viewport``, ...).
    """

    def __init__(self, browser: Any, lab: Lab, cells: Sequence[str], *, name: str = "notebook", **context: Any) -> None:
        self.lab, self.name, self.complaints = lab, name, list[str]()
        self.path = lab.folder / f"{name}.ipynb"
        cell: dict[str, Any] = {"cell_type": "code", "metadata": {}, "execution_count": None, "outputs": []}
        book = {
            "nbformat": 4,
            "nbformat_minor": 5,
            "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
            "cells": [{**cell, "id": f"cell-{number}", "source": code} for number, code in enumerate(cells)],
        }
        self.path.write_text(json.dumps(book), encoding="utf-8")
        options = {"viewport": {"width": 1280, "height": 1500}, "permissions": ["clipboard-write"], **context}
        self._context = browser.new_context(**options)
        self.page = self.open_page()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def open_page(self) -> Any:
        """Open the notebook in a further page, and wait for its kernel; the pages share the kernel."""
        page = self._context.new_page()
        page.on("console", lambda said: self._complain("console", said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: self._complain("uncaught", str(error)))
        page.on("request", lambda request: self._host(request.url))
        page.on("websocket", lambda socket: self._host(socket.url))
        page.goto(f"{self.lab.url}/lab/workspaces/{self.name}/tree/{self.name}.ipynb?token={self.lab.token}")
        self.ready(page)
        return page

    def ready(self, page: Any = None) -> None:
        """Wait until the page has the notebook and its kernel is idle or busy."""
        page = page or self.page
        status = f"{PANEL}?.sessionContext?.session?.kernel?.status"
        page.wait_for_function(f"() => ['idle', 'busy'].includes({status})", timeout=120_000)
        page.evaluate("() => window.jupyterapp.shell.collapseLeft()")

    def reload(self) -> None:
        """Save, as JupyterLab does now and then, and load the page again, as F5 does; the kernel lives on."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
        self.page.reload()
        self.ready()

    def run(self, number: int, *, wait: bool = True) -> None:
        """Run a cell."""
        self.page.evaluate(_RUN, [number, wait])

    def execute(self, code: str) -> str:
        """Run code in the kernel, when it is free, and give back what it printed.

        Raises:
            RuntimeError: the code raised.
        """
        printed, error = self.page.evaluate(_EXECUTE, code)
        if error:
            raise RuntimeError(error)
        return str(printed)

    def command(self, name: str, **arguments: Any) -> None:
        """Run one of JupyterLab's commands."""
        self.page.evaluate("([name, options]) => window.jupyterapp.commands.execute(name, options)", [name, arguments])

    def front(self) -> None:
        """Bring the notebook's tab to the front."""
        self.page.evaluate(f"() => window.jupyterapp.shell.activateById({PANEL}.id)")

    def theme(self, *, dark: bool) -> None:
        """Change JupyterLab's theme."""
        self.command("apputils:change-theme", theme=f"JupyterLab {'Dark' if dark else 'Light'}")
        self.page.wait_for_selector(f"body[data-jp-theme-light={str(not dark).lower()}]", state="attached")
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")  # it covers the page for a moment

    def kernel(self, action: str) -> None:
        """``interrupt``, ``restart`` or ``shutdown`` the kernel."""
        self.page.evaluate(f"(action) => {PANEL}.sessionContext.session.kernel[action]().then(() => undefined)", action)

    def close(self) -> None:
        """End the kernel and close the pages."""
        try:
            self.page.evaluate(f"async () => {{ await {PANEL}?.sessionContext.shutdown(); }}")
        finally:
            self._context.close()

    def _complain(self, kind: str, text: str) -> None:
        self.complaints.append(f"{kind}: {text}")

    def _host(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("data", "blob") and parts.hostname != "127.0.0.1":
            self._complain("request", url[:200])
