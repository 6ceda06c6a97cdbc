"""JupyterLab on loopback and Debian's Chromium, driven as a person would; for browser tests and benchmarks.

with Lab(folder) as lab, chromium() as browser:
    with Notebook(browser, lab, ["x = 1"]) as notebook:
        notebook.run(0)
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from workbench.models.cache import cache_root

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]
_PAGE = Path(__file__).parents[2] / "tools" / "jupyter" / "labconfig" / "page_config.json"  # as with `make lab`
_DISABLED = "@jupyterlab/debugger-extension"  # logs an error when a kernel ends while it asks about breakpoints
_START_S = 90.0
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


class Lab:
    """A JupyterLab server with a home, settings and a notebook folder of its own.

    Args:
        folder: for everything that it writes; the notebooks are in ``folder/notebooks``.
        environment: further variables for the server and its kernels.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder, self.token, self.port = folder / "notebooks", secrets.token_hex(16), _free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "lab.log"
        self._env = {name: value for name, value in os.environ.items() if not name.startswith(("JUPYTER", "IPYTHON"))}
        places = {
            "HOME": "home",
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "runtime",
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
            "IPYTHONDIR": "ipython",
        }
        for name, place in places.items():
            (folder / place).mkdir(parents=True)
            self._env[name] = str(folder / place)
        self.folder.mkdir()
        self._env |= {"WORKBENCH_CACHE": str(cache_root().parent), "WORKBENCH_RUNS": str(folder / "runs")}
        self._env |= {"WORKBENCH_STATE": str(folder / "state"), **(environment or {})}
        page = folder / "config" / "labconfig" / "page_config.json"
        page.parent.mkdir()
        settings = json.loads(_PAGE.read_text())
        settings["disabledExtensions"][_DISABLED] = True
        page.write_text(json.dumps(settings))

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={self.port}"]
        command += ["--ServerApp.port_retries=0", f"--IdentityProvider.token={self.token}", "--expose-app-in-browser"]
        command += [f"--notebook-dir={self.folder}", *(["--allow-root"] if os.geteuid() == 0 else [])]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command, env=self._env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        until = time.monotonic() + _START_S
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > until:
                self.__exit__()
                raise RuntimeError(f"JupyterLab does not answer:\n{self.log.read_text(errors='replace')[-3000:]}")
            time.sleep(0.2)
        return self

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/api?token={self.token}", timeout=5) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()  # the server ends its kernels first
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def chromium_path() -> str | None:
    """Debian's Chromium, if there is one."""
    return shutil.which("chromium")


@contextmanager
def chromium(*flags: str) -> Iterator[Any]:
    """Chromium without a network, through Playwright.

    Raises:
        RuntimeError: there is none.
    """
    from playwright.sync_api import sync_playwright

    path = chromium_path()
    if path is None:
        raise RuntimeError("no chromium in PATH; install it (Debian: apt-get install chromium fonts-dejavu)")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=[*FLAGS, *flags])
        try:
            yield browser
        finally:
            browser.close()


class Notebook:
    """One notebook, open in a page of its own.

    Attributes:
        page: the Playwright page.
        complaints: console errors, uncaught errors, and requests to other hosts than 127.0.0.1.

    Args:
        browser: from :func:`chromium`.
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
