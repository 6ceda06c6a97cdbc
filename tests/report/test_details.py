"""Sections of the policy lab: stalls by cause, classes, preemptions, MFU, and policies side by side."""

from __future__ import annotations

import re

import pytest

from workbench import metrics
from workbench.config import SLO
from workbench.report.details import figures_by_class, stalls_by_cause
from workbench.report.html import write_report
from workbench.report.run import ReportRun, differ_in_policy
from workbench.report.verify import verify_report

PROMISE = SLO(gap_ms=100, ttft_ms=500)


@pytest.fixture(scope="module")
def lab(make_crowded):
    """The same load under two policies. SYNTHETIC."""
    return [ReportRun(name, make_crowded(name, compute=True), {}, PROMISE) for name in ("chunked", "qos")]


def cells(details):
    names = [column.key for column in details.columns]
    return [dict(zip(names, row, strict=True)) for row in details.rows]


def test_stalls_are_counted_by_cause_with_their_share(lab):
    stalls = metrics.stalls(lab[0].trace, PROMISE)
    details, note = stalls_by_cause(lab[:1])
    (row,) = cells(details)
    assert (row["cause"], row["stalls"], row["share"]) == ("preemption", str(len(stalls)), "100")
    assert row["longest_ms"] == f"{stalls['gap_ms'].max():,.0f}"
    assert row["together_s"] == f"{stalls['gap_ms'].sum() / 1000:.2f}"
    assert note == f"Explained: 100 % of {len(stalls)}."


def test_stalls_without_step_records_are_not_explained(make_trace):
    run = ReportRun("theirs", make_trace("monolithic", 8192, output=60, kind="attached"), {}, SLO())
    details, note = stalls_by_cause([run])
    assert [row["cause"] for row in cells(details)] == ["unknown"]
    assert note.startswith("Explained: 0 % of ")


def test_no_stall_no_table(lab):
    calm = ReportRun("calm", lab[0].trace, {}, SLO(gap_ms=60_000))
    assert stalls_by_cause([calm]) == (None, "")


def test_classes_stand_in_order_and_say_the_setting_once(lab):
    rows = cells(figures_by_class(lab))
    assert [row["class"] for row in rows] == ["vip", "chat", "offline", "all"] * 2
    assert [row["setting"] for row in rows] == ["chunked", None, None, None, "qos", None, None, None]
    assert [row["mfu_percent"] is None for row in rows] == [True, True, True, False] * 2
    lost = lab[1].trace.steps["preempted"].explode().dropna()
    assert rows[4]["preemptions"] == str(lost.str.startswith("vip").sum()) == "0"


def test_what_nobody_knows_has_no_column(make_trace):
    run = ReportRun("theirs", make_trace(output=20, kind="attached"), {}, SLO())
    keys = [column.key for column in figures_by_class([run]).columns]
    assert "mfu_percent" not in keys
    assert keys[:3] == ["class", "requests", "ttft_p50_s"]


def test_policies_are_compared_only_when_all_else_is_equal(lab, make_crowded, runs):
    assert differ_in_policy(lab)
    assert not differ_in_policy(lab[:1])
    assert not differ_in_policy(runs), "budgets differ"
    other = ReportRun("other", make_crowded("qos", chunk=64), {}, PROMISE)
    assert not differ_in_policy([lab[0], other])
    assert not differ_in_policy([lab[0], ReportRun("again", lab[0].trace, {}, PROMISE)])


def headings(path):
    return re.findall(r'<h2 id="(\w+)">', path.read_text(encoding="utf-8"))


def test_a_run_with_preemptions_has_their_history(lab, tmp_path):
    path = write_report(tmp_path / "r.html", lab[:1], title="t", question="q")
    assert [name for name in headings(path) if name != "verdicts"][:8] == [
        "comparison", "gaps", "stalls", "classes", "steps", "history", "memory", "queue",
    ]  # fmt: skip
    assert "mfu" in headings(path)
    assert path.stat().st_size < 3_000_000
    text = path.read_text(encoding="utf-8")
    assert "measured matmul, 1 thread, bf16" in text
    drawn = re.search(r'<figure data-chart="history-0">.*?(<svg.*?</svg>)', text, re.DOTALL)[1]
    assert "offline (priority 2)" in drawn
    assert verify_report(path, lab[:1]) == []


def test_runs_that_differ_in_policy_are_compared(lab, tmp_path):
    told = []
    path = write_report(
        tmp_path / "r.html", lab, title="t", question="q", on_progress=lambda *step: told.append(step[:2])
    )
    assert "policies" in headings(path)
    assert "classes" not in headings(path)
    text = path.read_text(encoding="utf-8")
    assert text.count("<figure data-chart=") == len(told) == told[0][1]
    drawn = re.search(r'<figure data-chart="policy-waits">.*?(<svg.*?</svg>)', text, re.DOTALL)[1]
    assert all(f">{name}<" in drawn for name in ("chunked", "qos", "vip", "offline"))
    assert path.stat().st_size < 3_000_000
    assert verify_report(path, lab) == []


def test_a_calm_run_has_neither(make_trace, tmp_path):
    run = ReportRun("calm", make_trace(output=20), {}, SLO(gap_ms=60_000))
    found = headings(write_report(tmp_path / "r.html", [run], title="t", question="q"))
    assert not {"stalls", "history", "mfu", "policies"} & set(found)
    assert "classes" in found
