"""Notebooks in a real JupyterLab and Chromium, without a network.

``open_notebook(cells)`` opens one; the test fails when its page logs an error, throws, or asks any host but 127.0.0.1
for anything. Screenshots go to .artifacts/screenshots, which git ignores.
"""

from __future__ import annotations

import io
import itertools
import os
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from PIL import Image

from benchmarks.parts.chromium import chromium, chromium_path
from benchmarks.parts.lab import Lab
from benchmarks.parts.notebook import Notebook

ROOT = Path(__file__).parents[2]
SHOTS = ROOT / ".artifacts" / "screenshots"
_VOILA_S = 120.0  # for it to answer


# Of a module, not of the session: while Playwright runs, this thread has an event loop, and no second Playwright and no
# asynchronous test of another folder can have one.
@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium through Playwright."""
    if chromium_path() is None:
        pytest.skip("no Chromium: apt-get install chromium")
    pytest.importorskip("playwright.sync_api", reason="no playwright in this environment")
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="session")
def lab(tmp_path_factory):
    """A JupyterLab server with an empty home."""
    pytest.importorskip("jupyterlab", reason="no JupyterLab in this environment")
    with Lab(tmp_path_factory.mktemp("lab")) as server:
        yield server


@pytest.fixture
def voila(tmp_path):
    """Start a command that serves pages by Voilà on a port of its own, with an empty home: its address and process."""
    pytest.importorskip("voila", reason="no Voilà in this environment")
    places = ("JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR")
    home = {name: str(tmp_path / name) for name in places}
    log, started = tmp_path / "voila.log", []

    def start(command, **env):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with log.open("wb") as file:
            process = subprocess.Popen(
                [*command, f"--port={port}"],
                cwd=ROOT,
                env=os.environ | home | env,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        started.append(process)
        address, until = f"http://127.0.0.1:{port}", time.monotonic() + _VOILA_S
        while True:
            try:
                urllib.request.urlopen(f"{address}/voila/static/", timeout=5)
            except urllib.error.HTTPError:
                return address, process
            except OSError:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < until, "Voilà does not answer"
                time.sleep(0.2)

    yield start
    for process in started:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


_numbers = itertools.count(1)


@pytest.fixture
def open_notebook(browser, lab):
    """Open a notebook with these cells: a :class:`Notebook`."""
    opened = []

    def open_(cells, **options):
        notebook = Notebook(browser, lab, cells, name=f"book-{next(_numbers)}", **options)
        opened.append(notebook)
        return notebook

    yield open_
    for notebook in opened:
        notebook.close()
    assert [said for notebook in opened for said in notebook.complaints] == []


@pytest.fixture
def screenshot(request):
    """Keep a picture of a page or an element, and return it as an RGB image: ``screenshot(page, "dark")``."""

    def take(target, name=""):
        SHOTS.mkdir(parents=True, exist_ok=True)
        png = target.screenshot()
        test = re.sub(r"[^\w-]+", "-", request.node.name)
        (SHOTS / f"{Path(request.node.fspath).stem}.{test}{'.' * bool(name)}{name}.png").write_bytes(png)
        return Image.open(io.BytesIO(png)).convert("RGB")

    return take
