"""The panel on somebody else's server, as a page and in Chromium. The server is a stub: no vLLM is in here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from workbench.ui.charts import LIGHT

ROOT = Path(__file__).parents[2]
STUB = Path(__file__).parents[1] / "engine" / "openai_stub.py"
KEY = "sk-not-in-any-page-4b1d"
CELL = """\
from workbench import Workbench
wb = Workbench(engine="attached", url="{url}", api_key_env="STUB_KEY", runs={runs!r})
wb.panel()
"""
SOON_MS, START_MS = 240_000, 300_000
CHARTS = [
    "Token gaps",
    "Tokens a second, by the server's counters",
    "KV use and queue, by the server's /metrics",
    "Latencies, by the server's histograms",
]

pytestmark = pytest.mark.timeout(1800)


class Server:
    """The stub, which can go and come back at the same address."""

    def __init__(self):
        self.port = 0
        self.come()

    def come(self):
        settings = {"key": KEY, "port": self.port}
        self.process = subprocess.Popen(
            [sys.executable, STUB, json.dumps(settings)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.port = int(self.process.stdout.readline())

    def go(self):
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def server():
    made = Server()
    yield made
    made.go()


@pytest.fixture
def page(voila, browser, server, tmp_path):
    """A page with the panel alone, and everything that it was sent."""
    cell = {"cell_type": "code", "id": "cell-0", "metadata": {}, "execution_count": None, "outputs": []}
    cell["source"] = CELL.format(url=f"http://127.0.0.1:{server.port}/v1", runs=str(tmp_path / "runs"))
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book = {"nbformat": 4, "nbformat_minor": 5, "metadata": {"kernelspec": kernel}, "cells": [cell]}
    path = tmp_path / "attached.ipynb"
    path.write_text(json.dumps(book), encoding="utf-8")
    command = [sys.executable, "-m", "voila", str(path), "--no-browser", "--Voila.ip=127.0.0.1"]
    jupyter = dict.fromkeys(("JUPYTER_CONFIG_PATH", "JUPYTER_PATH"), str(ROOT / "tools" / "jupyter"))
    address, _ = voila(command, STUB_KEY=KEY, **jupyter)
    context = browser.new_context(viewport={"width": 1440, "height": 1100})
    opened = context.new_page()
    opened.complaints, opened.sent = [], []
    opened.on("console", lambda said: opened.complaints.append(said.text) if said.type == "error" else None)
    opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.on("websocket", lambda socket: socket.on("framereceived", lambda data: opened.sent.append(data)))
    opened.goto(address, timeout=START_MS, wait_until="commit")  # the kernel computes before it is loaded
    opened.wait_for_selector(".wb-board canvas", timeout=START_MS)
    yield opened
    context.close()


def state(page, word, timeout=SOON_MS):
    """Wait until the line above the charts says this."""
    says = "(word) => document.querySelector('.wb-state')?.textContent.includes(word)"
    page.wait_for_function(says, arg=word, timeout=timeout)


def chart(page, title):
    return page.locator("figure.wb-chart").filter(has=page.get_by_role("heading", name=title, exact=True))


def drawn(picture, colour, tolerance=30):
    """How many pixels of a picture have a colour."""
    wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
    return int((abs(np.asarray(picture).astype(int) - wanted) < tolerance).all(axis=2).sum())


def rows(page, name, dataset):
    """How many rows of a dataset a chart draws."""
    ids = page.evaluate("() => document.querySelector('.wb-board').parentElement.__board.ids()")
    return len(ids.get(name, {}).get(dataset, []))


def play(page, least):
    """Start a load and wait until so many gaps are drawn."""
    page.get_by_role("button", name="Run load", exact=True).click(timeout=SOON_MS)
    state(page, "playing")
    drawn_rows = "(n) => (document.querySelector('.wb-board').parentElement.__board.ids().gaps?.gaps ?? []).length >= n"
    page.wait_for_function(drawn_rows, arg=least, timeout=SOON_MS)


def test_a_server_is_attached_to_measured_lost_and_found_again(page, server, screenshot):
    screenshot(page, "before")
    assert page.locator("figure.wb-chart h3").all_text_contents() == CHARTS
    assert "Not here: steps, batches and memory peaks." in page.locator(".wb-lacks").inner_text()
    page.get_by_role("button", name="Attach", exact=True).click()
    state(page, "ready")

    reason = page.get_by_role("alert").filter(has_text="This server has no hot knobs")
    reason.wait_for(timeout=SOON_MS)
    assert "start vLLM with our probe" in reason.inner_text()
    assert page.get_by_role("slider", name="budget (tokens)").is_disabled()
    assert page.get_by_label("policy", exact=True).is_disabled()
    assert page.get_by_role("button", name="Leave server", exact=True).is_enabled()
    assert page.get_by_role("button", name="Stop engine", exact=True).count() == 0

    play(page, 200)
    page.wait_for_function(
        "() => { const ids = document.querySelector('.wb-board').parentElement.__board.ids();"
        " return (ids.rates?.rates ?? []).length >= 6 && (ids.latency?.quantiles ?? []).length >= 6; }",
        timeout=SOON_MS,
    )
    screenshot(page, "playing")
    assert drawn(screenshot(chart(page, CHARTS[0]), "gaps"), LIGHT.decode) > 200
    assert drawn(screenshot(chart(page, CHARTS[1]), "rates"), LIGHT.decode) > 50
    assert drawn(screenshot(chart(page, CHARTS[2]), "queue"), LIGHT.kv) > 20
    assert drawn(screenshot(chart(page, CHARTS[3]), "latency"), LIGHT.decode) > 20
    assert page.locator("figure.wb-chart").count() == len(CHARTS), "no empty box for what is not known"
    for one in page.locator("figure.wb-chart").all():
        box, canvas = one.bounding_box(), one.locator("canvas").bounding_box()
        assert canvas["x"] >= box["x"] - 1
        assert canvas["x"] + canvas["width"] <= box["x"] + box["width"] + 1, "clipped"
    badge = page.locator(".wb-badge").inner_text()
    assert badge == f"attached (127.0.0.1:{server.port})"

    server.go()
    alert = page.locator(".wb-trouble").get_by_role("alert")
    alert.wait_for(timeout=SOON_MS)
    said = alert.inner_text().strip()
    assert "nothing listens there any more" in said
    assert "attach again when it is up" in said
    assert page.locator(".wb-trouble").get_by_text("nothing listens there").count() == 1
    state(page, "failed")
    screenshot(page, "gone")
    assert page.get_by_role("button", name="Run load", exact=True).is_disabled()
    page.get_by_role("button", name="Attach", exact=True).click()  # it is still gone: one line again
    page.locator(".wb-trouble").get_by_text("nothing listens there (connection refused)").wait_for(timeout=SOON_MS)

    server.come()
    page.get_by_role("button", name="Attach", exact=True).click()
    state(page, "ready")
    play(page, 100)
    page.get_by_role("button", name="Stop load", exact=True).click()
    page.wait_for_function(
        "() => !document.querySelector('.wb-state').textContent.includes('playing')", timeout=SOON_MS
    )
    assert page.locator(".wb-trouble").get_by_role("alert").count() == 0
    screenshot(page, "back")

    sent = [data if isinstance(data, str) else data.decode(errors="replace") for data in page.sent]
    everything = [page.content(), *sent]
    assert len(everything) > 20
    assert not [text for text in everything if KEY in text]
    assert page.complaints == []
