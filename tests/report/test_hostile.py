"""Names, questions, prompts and errors with markup in them are words in a report, in the panel and in a notebook."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import altair as alt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from workbench.claims.verdict import Verdict
from workbench.config import SLO
from workbench.errors import EngineError
from workbench.report.html import write_report
from workbench.report.run import ReportRun
from workbench.report.verify import verify_report
from workbench.trace import Trace
from workbench.ui.panel.log import LogDrawer
from workbench.ui.panel.policies import pictured
from workbench.ui.static import show

_spec = importlib.util.spec_from_file_location("markup", Path(__file__).with_name("markup.py"))
markup = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(markup)
HOSTILE, EVERY = markup.HOSTILE, markup.EVERY


def hostile(trace):
    """The same trace under names that nobody means well with."""
    tables = dict(trace.tables)
    names = {
        name: f"{HOSTILE[i % len(HOSTILE)]}-{i}" for i, name in enumerate(tables["requests"]["request"].to_pylist())
    }
    classes = {name: HOSTILE[-1 - i] for i, name in enumerate(pc.unique(tables["requests"]["class"]).to_pylist())}

    def renamed(table, column, new):
        made = pa.array([new.get(name, name) for name in table[column].to_pylist()], pa.string())
        return table.set_column(table.column_names.index(column), column, made)

    for name in ("requests", "tokens", "batch"):
        tables[name] = renamed(tables[name], "request", names)
    tables["requests"] = renamed(tables["requests"], "class", classes)
    errors = pa.array([EVERY] * tables["requests"].num_rows, pa.string())
    for column in ("error", "finish_reason"):
        tables["requests"] = tables["requests"].set_column(
            tables["requests"].column_names.index(column), column, errors
        )
    meta = {
        **trace.meta,
        "label": EVERY, "scenario": EVERY, "question": EVERY, "setting": EVERY, "status": "failed", "reason": EVERY,
        "machine": {"processor": EVERY, EVERY: EVERY},
        "engine": {**(trace.meta.get("engine") or {}), "serve_command": f"vllm serve {EVERY}", "argv": HOSTILE},
        "workload": {"scenario": {"name": EVERY, "description": EVERY}},
        EVERY: {EVERY: [EVERY]},
    }  # fmt: skip
    return Trace(tables, meta)


@pytest.fixture(scope="module")
def trace(make_trace):
    return hostile(make_trace("chunked", 1024))


@pytest.fixture(scope="module")
def path(trace, tmp_path_factory):
    runs = [ReportRun(f"{EVERY} {n}", trace, {"policy": EVERY, "budget": 1024}, SLO()) for n in range(2)]
    return write_report(
        tmp_path_factory.mktemp("hostile") / "r.html", runs, title=EVERY, question=EVERY, reproduce=f"# {EVERY}"
    )


def test_a_report_holds_only_its_own_scripts(path):
    text = path.read_text(encoding="utf-8")
    assert verify_report(path) == []
    said = markup.assert_harmless(text, scripts=3)
    assert "<script>window.ran=1</script>" in said  # as words
    for name in ("specs", "report-data"):
        inside = re.search(rf'id="{name}">(.*?)</script>', text, re.DOTALL)[1]
        assert not re.search(r"<|window\.ran=\d+<", inside)
    assert EVERY in json.loads(re.search(r'id="report-data">(.*?)</script>', text, re.DOTALL)[1])["runs"][0]["label"]


def test_nothing_runs_when_a_report_is_read(path, browser):
    context = browser.new_context(viewport={"width": 1180, "height": 900})
    try:
        page = context.new_page()
        seen, asked = [], []
        page.on("dialog", lambda dialog: (seen.append(dialog.message), dialog.dismiss()))
        page.on("console", lambda message: seen.append(message.text))
        page.on("pageerror", lambda error: seen.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-charts=live]", timeout=120_000)
        for figure in page.query_selector_all("figure[data-chart]"):
            figure.scroll_into_view_if_needed()
            box = figure.bounding_box()
            for share in (0.3, 0.5, 0.7):  # tooltips hold names
                page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] * 0.5)
        assert page.evaluate("window.ran") is None
        assert page.locator("img").count() == 0
        assert seen == []
        assert asked == [path.as_uri()]
    finally:
        context.close()


def test_a_drawn_chart_in_a_notebook():
    data = pd.DataFrame({"x": HOSTILE, "y": range(len(HOSTILE))})
    chart = (
        alt.Chart(data, title=EVERY, description=EVERY).mark_text().encode(x="x:N", y="y:Q", text="x:N", tooltip="x:N")
    )
    markup.assert_harmless(show(chart)._repr_html_())


def test_a_verdict_in_a_notebook():
    verdict = Verdict(**dict.fromkeys(("claim", "text", "sentence", "origin"), EVERY), outcome="holds")
    assert EVERY in markup.assert_harmless(verdict._repr_html_())


def test_the_panels_log():
    log = LogDrawer()
    log.tell(EngineError(f"engine: {EVERY}"))
    log.show((EVERY,))
    said = markup.assert_harmless(log.drawer.parts[0].markup)
    assert said.count("<script>window.ran=1</script>") == 2


def test_the_panels_comparison_of_policies(trace):
    said = markup.assert_harmless(pictured({EVERY: trace}, SLO(), {EVERY: EVERY}))
    assert "<script>window.ran=1</script>" in said


def test_the_check_finds_what_it_looks_for():
    for one in [*HOSTILE[:4], HOSTILE[6]]:
        page = markup.look(f"<style></style><p>{one}</p>")
        assert page.found or page.scripts
    assert markup.look("<p x='" + HOSTILE[4] + "'>").found
