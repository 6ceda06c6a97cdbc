from __future__ import annotations

import json
import re

import numpy as np
import pytest

from workbench.config import SLO, Knobs
from workbench.errors import ConfigError, StoreError
from workbench.report.environment import sections
from workbench.report.finding import finding
from workbench.report.html import _ended, write_report
from workbench.report.packed import unpack_table
from workbench.report.page import plan
from workbench.report.run import ReportRun
from workbench.report.table import COLUMNS
from workbench.trace import Trace, table_of


def inside(path):
    text = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="report-data">(.*?)</script>', text, re.DOTALL)[1])


def test_is_one_small_file_with_the_javascript_once(report):
    text = report.read_text(encoding="utf-8")
    assert len(text.encode()) <= 3_000_000
    assert text.count("window.vegaEmbed") <= 1
    assert len(re.findall(r"<script>", text)) == 1
    assert list(report.parent.iterdir()) == [report]


def test_embedded_gaps_are_those_of_the_trace(report, runs):
    for run, stored in zip(runs, inside(report)["runs"], strict=True):
        tokens = run.trace.tokens.sort_values(["request", "client_s"])
        gaps = tokens.groupby("request")["client_s"].diff().dropna() * 1000
        held = unpack_table(stored["data"]["gaps"]["data"])
        assert sorted(held["gap_ms"]) == pytest.approx(sorted(gaps), abs=0.001)
        assert stored["summary"]["gap_max_ms"] == pytest.approx(gaps.max(), abs=1e-6)


def test_rows_from_the_runs(runs):
    row = runs[0].row()
    request = runs[0].trace.requests.set_index("request").loc["doc-0"]
    assert row["long_ttft_s"] == pytest.approx(request["first_s"] - request["planned_s"])
    assert row["peak_activation_mib"] == runs[0].trace.steps["activation_bytes"].max() / 2**20
    assert (row["policy"], row["budget"], row["chunk"]) == ("monolithic", 8192, 0)


def test_rows_given_are_the_ones_shown(runs, tmp_path):
    row = runs[2].row() | {"gap_max_ms": 1234.4, "stalls": None}
    path = write_report(tmp_path / "r.html", [runs[2]], title="t", question="q", rows=[row])
    text = path.read_text(encoding="utf-8")
    assert '<span class="value">1,234</span>' in text
    assert re.search(r'missing" data-key="stalls"><span class="value">n/a</span>', text)


def test_knobs_may_be_the_configuration(make_trace):
    run = ReportRun("a", make_trace(output=5), Knobs(budget=64, max_running=8), SLO())
    assert run.row()["budget"] == 64


def test_knobs_are_taken_from_the_run_when_none_are_given(make_trace):
    moved = ReportRun("a", make_trace(budget=512, chunk=64, output=5, second_revision=True), {}, SLO()).row()
    assert (moved["policy"], moved["budget"], moved["chunk"]) == ("chunked", "several", 64)
    attached = ReportRun("b", make_trace(kind="attached", output=5), {}, SLO()).row()
    assert (attached["policy"], attached["budget"], attached["chunk"]) == (None, None, None)


def test_an_attached_run_has_a_report_that_says_what_is_missing(make_trace, tmp_path):
    run = ReportRun("theirs", make_trace(output=30, kind="attached"), {}, SLO())
    text = write_report(tmp_path / "r.html", [run], title="t", question="q").read_text(encoding="utf-8")
    assert "No step records in this trace" in text
    assert "No memory peak per step in this trace" in text
    assert 'data-key="peak_activation_mib"><span class="value">n/a</span>' in text


def test_an_attached_servers_own_figures_are_a_section_where_they_were_read(make_trace, tmp_path):
    trace = make_trace(output=10, kind="attached")
    readings = [{"t_s": n / 2, "running": 2, "kv_use": 0.25, "output_tokens": 10 * n} for n in range(4)]
    bucket = {"value": 0.3, "low": 0.1, "high": 1.0}
    told = {"ttft_s": {"count": 5, "p50": bucket, "p90": bucket, "p99": bucket}}
    tables = {**trace.tables, "server": table_of("server", readings)}
    run = ReportRun("theirs", Trace(tables, {**trace.meta, "engine": {"attached": {"histograms": told}}}), {}, SLO())
    without = ReportRun("ours", trace, {}, SLO())
    ids = [[name for name, *_ in section.charts] for section in plan([run]) if section.section.id == "server"]
    assert ids == [["server-rates-0", "server-queue-0", "server-latency-0"]]
    assert not [section for section in plan([run]) if section.section.id == "queue"], "one chart of the queue is enough"
    assert not [section for section in plan([without]) if section.section.id == "server"]
    (both,) = [section for section in plan([run, without]) if section.section.id == "server"]
    assert [name for name, *_ in both.charts] == ["server-latency-0"]
    text = write_report(tmp_path / "r.html", [run], title="t", question="q").read_text(encoding="utf-8")
    assert "The server’s own figures" in text
    assert "TTFT P99" in text
    assert "No step records in this trace" in text


@pytest.mark.parametrize("status", ["failed", "interrupted", "cancelled", "complete"])
def test_the_headline_compares_what_came_to_its_end(make_trace, status):
    trace = make_trace(output=5)
    short = ReportRun("b", Trace(trace.tables, {**trace.meta, "status": status}), {}, SLO())
    whole = ReportRun("a", Trace(trace.tables, {**trace.meta, "status": "complete"}), {}, SLO())
    assert _ended([whole, short]) == ([0, 1] if status == "complete" else [0])
    assert _ended([short]) == [0], "where none came to its end, what there is"


@pytest.mark.parametrize("status", ["failed", "interrupted", "complete"])
def test_a_run_that_did_not_come_to_its_end_says_so_above_its_figures(make_trace, tmp_path, status):
    trace = make_trace(output=5)
    reason = None if status == "complete" else "the engine died in mid-run: out of host memory"
    cut = ReportRun("b", Trace(trace.tables, {**trace.meta, "status": status, "reason": reason}), {}, SLO())
    text = write_report(
        tmp_path / "r.html", [ReportRun("a", trace, {}, SLO()), cut], title="t", question="q"
    ).read_text()
    above = text[: text.index('id="comparison"')]
    assert ("is not whole" in above) is (status != "complete")
    if status != "complete":
        assert f"“b” is not whole ({status}): the engine died in mid-run: out of host memory</p>" in above


def test_secrets_stay_out(report):
    text = report.read_text(encoding="utf-8")
    assert "sk-secret" not in text
    assert "--api-key HIDDEN" in text


def test_sections_group_nested_metadata():
    found = sections({"seed": 7, "machine": {"cores": np.int64(2)}, "argv": ["a b", "--c"], "empty": {}})
    assert [(part.heading, part.items) for part in found] == [
        ("Run", [("seed", "7"), ("engine command", "'a b' --c")]),
        ("machine", [("cores", "2")]),
    ]


def row(gap, ttft, peak=None, stalls=0):
    return {"gap_max_ms": gap, "long_ttft_s": ttft, "peak_activation_mib": peak, "stalls": stalls}


def test_finding_sets_the_worst_against_the_best():
    rows = [row(7811, 7.8, 41.4), row(268, 9.1, 1.2), row(40, 12.4, 41.4)]
    headline, second, tiles = finding(["one step", "small", "decode first"], rows, SLO(gap_ms=300))
    assert headline == (
        "With “one step” a stream stands still for up to 7.8 s; with “decode first” for no longer than 40 ms, "
        "195 times less, but the long prompt’s first token takes 12.4 s instead of 7.8 s."
    )
    assert second == (
        "Of the 2 settings that keep every gap under the SLO of 300 ms, “small” serves the long prompt first: "
        "its long prompt’s first token comes after 9.1 s."
    )
    assert [(tile.before, tile.after) for tile in tiles] == [
        ("7.8 s", "40 ms"),
        ("7.8 s", "12.4 s"),
        ("41.4 MiB", "1.2 MiB"),
    ]


def test_a_figure_that_is_the_same_everywhere_is_no_finding():
    rows = [row(900, 7.8, 5.02), row(300, 9.1, 4.98)]
    assert [tile.name for tile in finding(["a", "b"], rows, SLO())[2]] == [
        "Longest token gap",
        "Long prompt’s first token",
    ]


def test_finding_of_one_run_and_of_none():
    assert finding(["a"], [row(512, 1.0, stalls=1)], SLO())[0] == (
        "The longest token gap is 512 ms; 1 gap above the SLO of 200 ms."
    )
    assert finding(["a"], [row(None, None)], SLO())[0] == "No token gap was measured."
    assert finding(["a", "b"], [row(900, 1.0), row(800, 1.01)], SLO())[:2] == (
        "With “a” a stream stands still for up to 900 ms; with “b” for no longer than 800 ms, "
        "at the same 1.0 s to the long prompt’s first token.",
        "No setting keeps every gap under the SLO of 200 ms.",
    )


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [("chunk", 0, "off"), ("chunk", 128, "128"), ("gap_max_ms", 7811.4, "7,811"), ("long_ttft_s", 7.84, "7.8"),
     ("stalls", 0, "0"), ("stalls", None, "n/a"), ("policy", "decode_first", "decode first")],
)  # fmt: skip
def test_cell_text(key, value, text):
    column = next(column for column in COLUMNS if column.key == key)
    assert column.text(value) == text


def test_bad_input_is_named(runs, tmp_path):
    with pytest.raises(ConfigError, match="at least one run"):
        write_report(tmp_path / "r.html", [], title="t", question="q")
    with pytest.raises(ConfigError, match="'budget 256'"):
        write_report(tmp_path / "r.html", [runs[2], runs[2]], title="t", question="q")
    with pytest.raises(ConfigError, match="got '1', expected 2"):
        write_report(tmp_path / "r.html", runs[:2], title="t", question="q", rows=[{}])


def test_a_folder_that_is_a_file_is_one_line(runs, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"report .*r\.html: .*; choose a folder"):
        write_report(tmp_path / "file" / "r.html", [runs[2]], title="t", question="q")


def test_progress_counts_every_chart(runs, tmp_path):
    told = []
    write_report(tmp_path / "r.html", [runs[2]], title="t", question="q", on_progress=lambda *step: told.append(step))
    assert [(done, total) for done, total, _ in told] == [(n, 5) for n in range(5)]
