from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from workbench.errors import RunNotFoundError
from workbench.report.verify import verify_report

CHANGED = "not as it was written: something in the file was changed since, or lost"


def test_a_sound_report_has_no_problems(report, runs):
    assert verify_report(report) == []
    assert verify_report(report, runs) == []


def edited(report, tmp_path, old, new):
    text = report.read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "edited.html"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return verify_report(path)


@pytest.mark.parametrize(
    ("added", "problem"),
    [
        ('<img src="https://example.org/a.png">', "<img src> points outside the file: https://example.org/a.png"),
        ('<a href="other.html">x</a>', "<a href> points outside the file: other.html"),
        ('<link rel="stylesheet" href="//example.org/a.css">', "<link href> points outside the file"),
        (
            "<style>@import 'https://example.org/a.css';</style>",
            "CSS points outside the file: https://example.org/a.css",
        ),
        ('<p style="background: URL(http://example.org/b)">x</p>', "CSS points outside the file: http://example.org/b"),
        ('<p onclick="x()">x</p>', "<p onclick> is code in an attribute"),
        ('<iframe srcdoc="x"></iframe>', "<iframe> in the page"),
        ('<meta http-equiv="refresh" content="0;url=x">', "<meta http-equiv=refresh>"),
        ("<script>1</script>", "2 scripts in the page, expected 1"),
    ],
)
def test_finds_what_points_outside_or_runs(report, tmp_path, added, problem):
    problems = edited(report, tmp_path, "<main>", f"<main>{added}")
    assert any(problem in found for found in problems), problems


def test_finds_a_changed_script(report, tmp_path):
    problems = edited(report, tmp_path, "</script>\n</body>", ";fetch('x')</script>\n</body>")
    assert problems == ["a script that the page's own policy does not name", CHANGED]


def test_finds_a_lost_drawing_and_a_lost_chart(report, tmp_path):
    text = report.read_text(encoding="utf-8")
    drawing = re.search(r'<figure data-chart="gaps-2">.*?(<svg.*?</svg>)', text, re.DOTALL)[1]
    assert edited(report, tmp_path, drawing, "") == ["chart gaps-2: no static drawing", CHANGED]
    figure = re.search(r'<figure data-chart="steps-5">.*?</figure>', text, re.DOTALL)[0]
    problems = edited(report, tmp_path, figure, "")
    assert problems[0] == "12 charts in the page, expected 13"


def test_finds_a_figure_that_was_touched_up(report, runs, tmp_path):
    longest = runs[0].figures["gap_max_ms"]
    shown = f"{longest:,.0f}"
    cell = f'data-key="gap_max_ms"><span class="bar alert" style="--share: 100.0%"></span><span class="value">{shown}<'
    problems = edited(report, tmp_path, cell, cell.replace(shown, "99"))
    assert problems == [f"prompt in one step: gap_max_ms reads '99' in the table, its data say '{shown}'", CHANGED]


def test_finds_a_summary_that_its_data_do_not_support(report, runs, tmp_path):
    longest = runs[0].figures["gap_max_ms"]
    old = f'"gap_max_ms":{json.dumps(longest)},"engine_gap_count"'
    problems = edited(report, tmp_path, old, '"gap_max_ms":99.0,"engine_gap_count"')
    assert problems == [f"prompt in one step: gap_max_ms is 99.0 in the summary, {longest:.3f} from the data", CHANGED]


def test_finds_figures_other_than_the_ones_given(report, runs):
    other = replace(runs[0], summary={**runs[0].figures, "tokens": 1})
    problems = verify_report(report, [other, *runs[1:]])
    assert problems == [f"prompt in one step: tokens is {runs[0].figures['tokens']} in the report, 1 in the run"]
    assert verify_report(report, runs[:2]) == ["the runs inside are not the ones given"]


def test_says_what_is_not_a_report(report, tmp_path):
    with pytest.raises(RunNotFoundError, match=r"missing\.html"):
        verify_report(tmp_path / "missing.html")
    cut = tmp_path / "cut.html"
    cut.write_text(report.read_text(encoding="utf-8")[:200_000], encoding="utf-8")
    assert verify_report(cut)[-1].startswith("no data inside")


@pytest.mark.parametrize(
    "place",
    [
        r'<p class="headline">[^<\d]*',
        r'<span class="before">[^<\d]*',
        r'<h2 id="stalls">.*?<td class="number">',
        r'<figure data-chart="gaps-2">.*?<text[^>]*>',
        r'<p class="eyebrow">.*?<span>[^<\d]*',
        r'<meta name="seal" content="[^"\d]*',
    ],
    ids=["headline", "tile", "stalls by cause", "text of a drawing", "date", "the seal"],
)
def test_finds_a_changed_number_wherever_it_stands(report, tmp_path, place):
    text = report.read_text(encoding="utf-8")
    at = re.search(place + r"(?=\d)", text, re.DOTALL).end()
    path = tmp_path / "edited.html"
    path.write_text(text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :], encoding="utf-8")
    assert verify_report(path) == [CHANGED]


def test_a_page_without_a_seal_is_told_apart_from_a_changed_one(report, tmp_path):
    seal = re.search(r'<meta name="seal".*?>', report.read_text(encoding="utf-8"))[0]
    assert edited(report, tmp_path, seal, "") == ["no seal: not written by this program, or by an older version of it"]


def test_ends_of_lines_of_another_system_change_nothing(report, tmp_path):
    path = tmp_path / "windows.html"
    path.write_text(report.read_text(encoding="utf-8"), encoding="utf-8", newline="\r\n")
    assert b"\r\n" in path.read_bytes()
    assert verify_report(path) == []
