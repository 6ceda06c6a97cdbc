"""Notebooks in a real JupyterLab and Chromium, without a network.

``open_notebook(cells)`` opens one; the test fails when its page logs an error, throws, or asks any host but 127.0.0.1
for anything. Screenshots go to .artifacts/screenshots, which git ignores.
"""

from __future__ import annotations

import io
import itertools
import re
from pathlib import Path

import pytest
from PIL import Image

from benchmarks.parts.lab import Lab, Notebook, chromium, chromium_path

SHOTS = Path(__file__).parents[2] / ".artifacts" / "screenshots"


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
