"""The quickstart as a dashboard for a class: Voilà, Chromium and the real vLLM engine."""

from __future__ import annotations

import sys
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]
# No timer of the page goes off any more.
_SILENCE = "() => { const last = setInterval(() => {}, 1e6); for (let id = 0; id <= last; id += 1) clearInterval(id); }"
pytestmark = [pytest.mark.live, pytest.mark.timeout(600)]


@pytest.fixture
def dashboard(voila, tmp_path):
    """Voilà as `make dashboard` starts it; gives its address and process."""
    command = [sys.executable, "-m", "voila", "notebooks/00_quickstart.ipynb", "--no-browser", "--Voila.ip=127.0.0.1"]
    jupyter = dict.fromkeys(("JUPYTER_CONFIG_PATH", "JUPYTER_PATH"), str(ROOT / "tools" / "jupyter"))
    # A page says every 15 s that it is there.
    return voila(command, WORKBENCH_RUNS=str(tmp_path / "runs"), WORKBENCH_LEAVE_AFTER_S="20", **jupyter)


def test_a_class_sees_the_panel_alone_and_its_buttons_drive_an_engine(dashboard, browser, screenshot):
    address, process = dashboard
    context = browser.new_context(viewport={"width": 1280, "height": 1000})
    page = context.new_page()
    complaints = []
    page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda asked: None if "127.0.0.1" in asked.url or asked.url.startswith(("data:", "blob:"))
            else complaints.append(asked.url))  # fmt: skip
    page.goto(address)
    page.wait_for_selector(".wb-board canvas", timeout=120_000)
    assert page.get_by_role("heading", name="Turn a knob of a running engine").count() == 1
    assert page.get_by_text("The same from code").count() == 0, "the tour is for those who read code"
    assert page.locator(".jp-InputArea-editor, .cm-editor").count() == 0
    page.get_by_role("button", name="Start engine").click()
    ready = "() => document.querySelector('.wb-state')?.textContent.startsWith('ready')"
    page.wait_for_function(ready, timeout=180_000)
    engine = psutil.Process(process.pid).children(recursive=True)
    page.get_by_role("button", name="Run load").click()
    page.wait_for_function("() => document.querySelector('.wb-state').textContent.includes('playing')", timeout=30_000)
    page.wait_for_timeout(25_000)
    screenshot(page, "running")
    assert "playing" in page.locator(".wb-state").inner_text(), "somebody looks: it goes on"
    page.evaluate(_SILENCE)  # a laptop that is lost says nothing more
    kernels = psutil.Process(process.pid).children()
    _, alive = psutil.wait_procs([one for one in engine if one not in kernels], timeout=60)
    assert alive == [], "no engine is left"
    assert complaints == []
    page.close(run_before_unload=True)  # the class goes home: the page's kernel ends
    _, alive = psutil.wait_procs(kernels, timeout=30)
    assert alive == []
    context.close()
