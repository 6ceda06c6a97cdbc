"""The report in Debian's Chromium, with the network blocked."""

from __future__ import annotations

import contextlib
import io
import re
import zlib
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from PIL import Image

COLOURS = {"decode": (0, 114, 178), "prefill": (230, 159, 0), "memory": (204, 121, 167), "alert": (213, 94, 0)}
DARK_GROUND = (21, 24, 29)


@dataclass
class Opened:
    page: object
    requests: list = field(default_factory=list)
    complaints: list = field(default_factory=list)


@pytest.fixture
def open_page(browser):
    """Open a file and record every request and complaint; everything but the file itself is refused."""
    contexts = []

    def open_(path, *, live=True, **options):
        context = browser.new_context(viewport={"width": 1180, "height": 900}, **options)
        contexts.append(context)
        opened = Opened(context.new_page())
        url = path.as_uri()
        context.route("**/*", lambda route: route.continue_() if route.request.url == url else route.abort())
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.on("console", lambda message: opened.complaints.append(message.text))
        opened.page.on("pageerror", lambda error: opened.complaints.append(str(error)))
        opened.page.goto(url)
        if live:
            opened.page.wait_for_selector("html[data-charts=live]", timeout=120_000)
        return opened

    yield open_
    for context in contexts:
        context.close()


def near(png, colour, slack=12):
    """How many pixels of a screenshot have this colour."""
    data = Image.open(io.BytesIO(png)).convert("RGB").tobytes()
    pixels = zip(data[::3], data[1::3], data[2::3], strict=True)
    return sum(all(abs(a - b) <= slack for a, b in zip(pixel, colour, strict=True)) for pixel in pixels)


def charts(page):
    return {f.get_attribute("data-chart"): f for f in page.query_selector_all("figure[data-chart]")}


def test_opens_offline_without_a_request_or_a_complaint(report, open_page):
    opened = open_page(report)
    assert opened.requests == [report.as_uri()]
    assert opened.complaints == []


def test_charts_become_interactive_and_have_their_colours(report, open_page):
    page = open_page(report).page
    assert len(charts(page)) == 13
    assert page.locator("figure .vega-embed svg").count() == 13
    shots = {name: figure.screenshot() for name, figure in charts(page).items()}
    for name, png in shots.items():
        expected = {"gaps": "decode", "steps": "prefill", "memory": "memory"}[name.split("-")[0]]
        assert near(png, COLOURS[expected]) > 40, name
    # Of two charts with one scale, the one-step run has stalls (diamonds, whiskers, SLO), decode first only the SLO.
    assert near(shots["gaps-0"], COLOURS["alert"]) > near(shots["gaps-5"], COLOURS["alert"]) + 20


def test_hover_tells_the_value(report, open_page):
    page = open_page(report).page
    page.locator("figure[data-chart=gaps-0] .mark-symbol path").last.hover(force=True)
    tip = page.locator("#vg-tooltip-element.visible")
    tip.wait_for(timeout=10_000)
    assert "cause" in tip.inner_text()
    assert "prefill" in tip.inner_text()


def test_downloads_the_gaps_as_csv(report, runs, open_page):
    page = open_page(report, accept_downloads=True).page
    with page.expect_download() as started:
        page.locator("#downloads li").nth(1).get_by_text("gaps.csv").click()
    lines = Path(started.value.path()).read_text(encoding="utf-8").splitlines()
    assert started.value.suggested_filename == "prompt-in-one-step.gaps.csv"
    assert lines[0] == "request,class,index,n,at_s,gap_ms,engine_gap_ms"
    assert len(lines) == 1 + runs[0].figures["gap_count"]
    assert max(float(line.split(",")[5]) for line in lines[1:]) == pytest.approx(
        runs[0].figures["gap_max_ms"], abs=1e-3
    )


def test_is_readable_without_javascript(report, open_page):
    opened = open_page(report, live=False, java_script_enabled=False)
    page = opened.page
    assert opened.requests == [report.as_uri()]
    assert page.locator("table.comparison tbody tr").count() == 6
    assert "prompt in one step" in page.locator("table.comparison").inner_text()
    assert page.locator("figure .plot > svg").count() == 13
    for name, figure in charts(page).items():
        expected = {"gaps": "decode", "steps": "prefill", "memory": "memory"}[name.split("-")[0]]
        assert near(figure.screenshot(), COLOURS[expected]) > 40, name
    assert page.locator(".scripted").first.is_hidden()


@pytest.mark.parametrize("java_script", [True, False])
def test_follows_a_dark_theme(report, open_page, java_script):
    page = open_page(report, live=java_script, color_scheme="dark", java_script_enabled=java_script).page
    png = page.locator("figure[data-chart=gaps-0]").screenshot()
    assert near(png, DARK_GROUND, slack=3) > 20_000
    assert near(png, (255, 255, 255), slack=3) < 500
    assert near(png, (86, 180, 233)) > 40  # decode, the lighter Okabe-Ito blue


def test_prints(report, open_page):
    page = open_page(report, color_scheme="dark").page
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.locator("#downloads").is_hidden()
    assert page.pdf(format="A4")[:5] == b"%PDF-"


def test_markup_in_names_stays_text(make_trace, open_page, tmp_path):
    from workbench.config import SLO
    from workbench.report.html import write_report
    from workbench.report.run import ReportRun
    from workbench.report.verify import verify_report

    evil = "</script><svg><img src=x onerror=document.title='bad'><b>&\"'"
    trace = make_trace(output=20)
    renamed = {
        name: table.set_column(
            table.schema.get_field_index("request"),
            table.schema.field("request"),
            [[evil if r == "doc-0" else r for r in table["request"].to_pylist()]],
        )
        if "request" in table.schema.names
        else table
        for name, table in trace.tables.items()
    }
    trace = type(trace)(renamed, dict(trace.meta) | {"note": evil, "label": evil})
    run = ReportRun(evil, trace, {"policy": evil, "budget": 1024, "chunk": 0}, SLO())
    path = write_report(tmp_path / "evil.html", [run], title=evil, question=evil, reproduce=evil)
    assert verify_report(path, [run]) == []
    opened = open_page(path)
    assert opened.complaints == []
    assert opened.page.title() == evil
    assert opened.page.locator("h1").inner_text() == evil
    assert opened.page.locator("img").count() == 0
    for name in ("gaps-0", "steps-0"):  # the origin in the heading, the request in the legend
        texts = opened.page.locator(f"figure[data-chart={name}] svg text").all_text_contents()
        assert sum(evil[:20] in text for text in texts) >= 2, name


def test_the_pdf_has_the_charts_in_their_colours(report, browser, tmp_path):
    from workbench.report.pdf import write_pdf

    data = write_pdf(report, tmp_path / "report.pdf").read_bytes()
    drawn = b""
    for found in re.finditer(rb"stream\r?\n(.*?)endstream", data, re.DOTALL):
        with contextlib.suppress(zlib.error):
            drawn += zlib.decompressobj().decompress(found[1])
    used = {tuple(map(float, found)) for found in re.findall(rb"([\d.]+) ([\d.]+) ([\d.]+) (?:rg|RG)\b", drawn)}
    for name, colour in COLOURS.items():
        assert any(all(abs(255 * a - b) < 2 for a, b in zip(one, colour, strict=True)) for one in used), name
    assert len(re.findall(rb"/Type\s*/Page\b", data)) >= 2


def test_an_exported_notebook_shows_its_chart_and_asks_for_nothing(open_page, tmp_path):
    import nbformat

    from workbench import Workbench
    from workbench.report.export import write_page
    from workbench.ui.charts import gap_chart
    from workbench.ui.static import PAGE_LOOK, show

    run = Workbench.open("data/runs/chats_beside_a_prompt-budget-320")
    shown = show(gap_chart(run.trace, run.slo, PAGE_LOOK))
    output = nbformat.v4.new_output("display_data", {"text/html": shown._repr_html_(), "text/plain": repr(shown)})
    cell = nbformat.v4.new_code_cell("show(...)", outputs=[output])
    page = write_page(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "page.html", title="t")
    opened = open_page(page, live=False)
    assert opened.requests == [page.as_uri()]
    assert opened.complaints == []
    assert near(opened.page.locator(".wb-static").screenshot(), COLOURS["decode"]) > 40
