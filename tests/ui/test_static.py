"""A chart in a notebook: inline SVG, no address that is fetched, colours by the page's theme."""

from __future__ import annotations

import re

import pytest

from workbench.config import SLO
from workbench.ui.charts import DARK, LIGHT, Look, gap_chart
from workbench.ui.static import PAGE_LOOK, show


@pytest.fixture(scope="module")
def trace():
    import importlib.util
    from pathlib import Path

    spec = importlib.util.spec_from_file_location("synthetic", Path(__file__).parent / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.synthetic_trace()


def test_is_svg_that_asks_for_nothing(trace):
    html = show(gap_chart(trace, SLO(), PAGE_LOOK))._repr_html_()
    assert "<svg" in html
    assert "<script" not in html
    addresses = set(re.findall(r"https?://[^\"'<> ]+", html))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}  # names, not fetched


def test_follows_the_theme_of_the_page(trace):
    html = show(gap_chart(trace, SLO(), PAGE_LOOK))._repr_html_()
    assert f"var(--wb-decode, {LIGHT.decode})" in html
    light, dark = html.index(f"--wb-decode: {LIGHT.decode}"), html.index(f"--wb-decode: {DARK.decode}")
    assert light < html.index('[data-jp-theme-light="false"] .wb-static') < dark


def test_a_terminal_gets_the_description(trace):
    shown = show(gap_chart(trace, SLO(), PAGE_LOOK))
    assert repr(shown).startswith("Token gaps. Points: time between two outputs")
    assert repr(shown) == shown.description


def test_two_drawings_in_one_page_share_no_id(trace):
    ids = [set(re.findall(r'\bid="([^"]+)"', show(gap_chart(trace, SLO(), Look(theme="page"))).svg)) for _ in range(2)]
    assert ids[0]
    assert not ids[0] & ids[1]
