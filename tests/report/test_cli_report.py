"""``workbench report``: recorded runs in, one file out, and the same file checked again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from workbench.cli import app
from workbench.cli import report as verbs
from workbench.errors import InputError, RunNotFoundError, StoreError
from workbench.report import pdf
from workbench.report.finding import finding
from workbench.report.intervals import intervals
from workbench.run import RecordedRun

RUNS = Path(__file__).parents[2] / "data" / "runs"
PAIR = [str(RUNS / f"chats_beside_a_prompt-budget-{budget}") for budget in (320, 768)]


def answer(*words):
    """What the command prints; its errors are raised."""
    done = CliRunner().invoke(app, ["report", *words], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.stdout


def test_two_runs_make_a_comparison_that_can_be_checked_against_them(tmp_path):
    out = tmp_path / "pair.html"
    said = json.loads(answer(*PAIR, "--out", str(out), "--json"))
    assert said == {"report": str(out), "bytes": out.stat().st_size}
    text = out.read_text(encoding="utf-8")
    assert '<h2 id="intervals">' in text
    assert "A: budget 320" in text
    assert "The longest gap is one gap of each run" in text, "which the headline names, and the verdict does not"
    assert "recorded, live CPU, AMD EPYC, 2 cores, 2026-11-30" in text
    checked = json.loads(answer("--verify", str(out), *PAIR, "--json"))
    assert checked["problems"] == []
    assert checked["runs"] == 2
    assert answer("--verify", str(out), *PAIR).startswith(f"sound: {checked['charts']} charts, 2 runs")
    with pytest.raises(StoreError, match="the runs inside are not the ones given"):
        answer("--verify", str(out), PAIR[0])


def test_a_report_in_chinese_is_as_sound(tmp_path):
    out = tmp_path / "zh.html"
    answer(*PAIR, "--out", str(out), "--lang", "zh")
    text = out.read_text(encoding="utf-8")
    assert '<html lang="zh-CN">' in text
    assert "差异有多可靠？" in text
    assert "How sure is the difference?" not in text
    assert json.loads(answer("--verify", str(out), *PAIR, "--json"))["problems"] == []


def test_bad_input_is_one_line(tmp_path, monkeypatch):
    with pytest.raises(InputError, match=r"language: got 'fr', expected one of en \(English\), zh"):
        answer(*PAIR, "--lang", "fr")
    with pytest.raises(InputError, match="at least one run folder or id"):
        answer()
    with pytest.raises(RunNotFoundError, match="nosuch"):
        answer("nosuch", "--runs", str(tmp_path))
    with pytest.raises(RunNotFoundError):
        answer("--verify", str(tmp_path / "none.html"))
    monkeypatch.setenv(pdf.BROWSER, "no-such-browser")
    with pytest.raises(InputError, match="apt-get install chromium"):
        answer(PAIR[0], "--pdf", "--out", str(tmp_path / "r.html"))
    assert not (tmp_path / "r.html").exists()


def test_a_browser_that_prints_nothing_is_named(tmp_path, monkeypatch):
    monkeypatch.setenv(pdf.BROWSER, "true")
    with pytest.raises(StoreError, match="true wrote none"):
        pdf.write_pdf(tmp_path / "page.html", tmp_path / "page.pdf")
    assert not (tmp_path / "page.pdf").exists()


def test_the_verdict_on_a_simulated_pair_is_of_the_gap_that_its_headline_names():
    runs = [RecordedRun(RUNS / f"articles_c14-{name}") for name in ("monolithic", "chunked-with-classes")]
    made = verbs._labelled(runs)
    headline, _, _ = finding([one.label for one in made], [one.row() for one in made], made[0].slo)
    said = intervals(verbs._compare(runs), [one.label for one in made])
    longest = [float(run.tokens.groupby("request")["engine_s"].diff().max()) for run in runs]
    assert 24.5 < longest[0] / longest[1] < 25, "3.8 s and 154 ms"
    assert "25 times less" in headline
    assert said.verdict == (
        "B's recording better by a factor of 24.6 (longest gap lower) (simulated: the same each time)."
    )
    assert {row[4] for row in said.table.rows} == {"exact"}
