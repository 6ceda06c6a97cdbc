"""A Chinese report in Debian's Chromium without a network: its glyphs are drawn, on screen and in print."""

from __future__ import annotations

import contextlib
import re
import zlib
from pathlib import Path

import pytest

from workbench import Workbench
from workbench.report.html import write_report
from workbench.report.pdf import write_pdf
from workbench.report.run import ReportRun

ROOT = Path(__file__).parents[2]
SHOTS = ROOT / ".artifacts" / "screenshots"
UNASSIGNED = "\U0003fffd"  # no font has it: what is drawn in its place is drawn for every lack
# The pixels of one character in the font of an element.
DRAWN = """(element, letter) => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 64, height: 64 });
  const pen = canvas.getContext("2d", { willReadFrequently: true });
  const style = getComputedStyle(element);
  pen.font = `40px ${style.fontFamily}`;
  pen.fillText(letter, 8, 48);
  return Array.from(pen.getImageData(0, 0, 64, 64).data).filter((_, i) => i % 4 === 3).join();
}"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Of two recorded runs."""
    runs = [
        ReportRun.of(Workbench.open(ROOT / "data" / "runs" / name))
        for name in ("chats_beside_a_prompt-budget-320", "thrash-chunked")
    ]
    path = tmp_path_factory.mktemp("zh") / "report.html"
    return write_report(path, runs, title="中文报告", question="What does one long prompt do?", lang="zh")


@pytest.fixture(scope="module")
def page(browser, report):
    """The report, opened; whatever else it asks for is refused and fails the test."""
    context = browser.new_context(viewport={"width": 1180, "height": 900})
    asked = []
    context.route("**/*", lambda route: route.continue_() if route.request.url == report.as_uri() else route.abort())
    opened = context.new_page()
    opened.on("request", lambda request: asked.append(request.url))
    opened.goto(report.as_uri())
    opened.wait_for_selector("html[data-charts=live]", timeout=240_000)
    yield opened
    context.close()
    assert asked == [report.as_uri()]


@pytest.mark.parametrize("where", ["h1", "h2#gaps", "figure svg text", "td"])
def test_han_characters_are_drawn_and_not_boxes(page, where):
    element = page.query_selector(where)
    lack, stall, gap = (element.evaluate(DRAWN, letter) for letter in (UNASSIGNED, "卡", "隔"))
    assert "255" in stall, "nothing was drawn"
    assert len({lack, stall, gap}) == 3


def test_headings_charts_and_table_are_in_chinese(page):
    assert page.get_attribute("html", "lang") == "zh-CN"
    headings = page.locator("h2").all_inner_texts()
    assert {"对比", "token 间隔", "按原因统计卡顿", "调度步构成", "抢占与重算", "定义", "如何复现"} <= set(headings)
    drawn = page.locator("figure svg text").all_text_contents()
    assert {"自运行开始的时间，s", "间隔，ms（对数）", "解码"} <= set(drawn)
    assert "gap, ms (log)" not in drawn
    assert page.locator("td[data-key=stalls]").count() == 2
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / "report-zh.png", full_page=True)


def test_the_pdf_has_the_characters(report, browser, tmp_path):
    """Its fonts say which of their glyphs stands for which character; one that is not drawn is in no font."""
    data = write_pdf(report, tmp_path / "report.pdf").read_bytes()
    unpacked = b""
    for found in re.finditer(rb"stream\r?\n(.*?)endstream", data, re.DOTALL):
        with contextlib.suppress(zlib.error):
            unpacked += zlib.decompressobj().decompress(found[1])
    said = set()
    for few in re.findall(rb"beginbfchar(.*?)endbfchar", unpacked, re.DOTALL):
        said |= {int(code, 16) for code in re.findall(rb"<\w+> <(\w{4})>", few)}
    for ranges in re.findall(rb"beginbfrange(.*?)endbfrange", unpacked, re.DOTALL):
        for first, last, code in re.findall(rb"<(\w+)> <(\w+)> <(\w{4})>", ranges):
            said |= set(range(int(code, 16), int(code, 16) + int(last, 16) - int(first, 16) + 1))
    assert {ord(letter) for letter in "卡顿间隔预填充解码抢占"} <= said
    assert b"zh-CN" in data


PANEL = """\
from workbench import Workbench
wb = Workbench(engine="simulated", gpu="H100", model="qwen2.5-7b", max_model_len=8192)
wb.panel(lang="zh")
"""


def test_the_panel_speaks_chinese_from_its_forms_to_its_charts(open_notebook):
    notebook = open_notebook([PANEL])
    notebook.run(0)
    page = notebook.page
    page.get_by_role("button", name="启动引擎").wait_for()
    for words in ("启动参数", "热旋钮", "负载", "立即投入长提示词", "未启动", "模拟"):
        assert page.get_by_text(words, exact=False).count(), words
    page.get_by_role("slider", name="token 预算").wait_for()
    for chart in ("token 间隔", "调度步构成", "每步激活内存", "KV 使用率与队列"):
        page.get_by_role("heading", name=chart).first.wait_for()
    page.get_by_role("button", name="token 间隔的表格").click()
    page.get_by_text("尚无数据。").first.wait_for()
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / "panel-zh.png")
