"""What a reader of a report needs beside the charts: the meter's word, verdicts, intervals, commands."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pytest

from workbench import Workbench, metrics
from workbench.config import SLO
from workbench.report.html import write_report
from workbench.report.intervals import intervals
from workbench.report.reproduce import again, serve_commands
from workbench.report.run import ReportRun
from workbench.report.selfcheck import self_check
from workbench.report.verdicts import verdicts
from workbench.report.verify import summary_of, verify_report
from workbench.trace import TABLES, Trace


def with_client(trace, rows):
    table = pa.Table.from_pylist([{"t_s": t, "late_s": late} for t, late in rows], schema=TABLES["client"])
    return Trace({**trace.tables, "client": table}, trace.meta)


def test_a_client_that_kept_up_says_so_with_its_figures(make_trace):
    run = ReportRun("a", with_client(make_trace(), [(0.0, 0.0002), (2.0, 0.012)]), {}, SLO())
    table, said = self_check([run])
    row = dict(zip((column.key for column in table.columns), table.rows[0], strict=True))
    seconds = metrics.summary(run.trace, run.slo)["duration_s"]
    assert row["late_readings"] == "2"
    assert row["late_max_ms"] == "12.0"
    assert row["late_share"] == f"{100 * 0.0122 / seconds:.2f}"
    assert said.startswith("The client kept up")
    assert "12.0 ms late" in said


def test_a_client_that_was_late_warns_and_one_that_is_not_there_is_not_praised(make_trace):
    trace = make_trace()
    late = ReportRun("late", with_client(trace, [(t, 0.4) for t in range(5)]), {}, SLO())
    assert self_check([late])[1].startswith("The client itself was late often")
    table, said = self_check([ReportRun("none", with_client(trace, []), {}, SLO())])
    assert table is None
    assert "no client" in said


def test_only_claims_that_the_runs_can_judge_have_a_verdict(runs):
    found = {verdict.claim: verdict.outcome for verdict in verdicts(runs)}
    assert found["C1"] == "holds"
    assert {"C2", "C13"} <= found.keys()
    assert "C12" not in found
    assert list(found) == sorted(found, key=lambda claim: int(claim[1:]))
    assert "C3" not in [verdict.claim for verdict in verdicts(runs[:1])], "one run has nothing to be compared with"


class Compared:
    """Two runs, made up."""

    verdict = SimpleNamespace(words="A better by a factor of 3 (gap P99 lower)")
    table = pd.DataFrame(
        [
            {
                "measure": "gap_p99",
                "a": 10.0,
                "b": 30.0,
                "ratio": 1 / 3,
                "low": 0.3,
                "high": 0.4,
                "level": 0.95,
                "better": "A",
            }
        ]
    ).set_index("measure")
    concerns = ("the runs were not played in turn",)


def test_two_runs_stand_beside_each_other_with_an_interval(runs, tmp_path):
    found = intervals(Compared, ["one", "two"])
    assert found.verdict == "A better by a factor of 3 (gap P99 lower)."
    assert found.table.rows == [["gap P99, ms", "10.0", "30.0", "0.333", "0.300 to 0.400 (95 %)", "A"]]
    assert [column.heading for column in found.table.columns][1:3] == ["A: one", "B: two"]
    assert intervals(None, []) is None
    path = write_report(tmp_path / "r.html", runs[:2], title="t", question="q", compared=Compared)
    text = path.read_text(encoding="utf-8")
    assert "0.300 to 0.400 (95 %)" in text
    assert "The runs were not played in turn." in text
    assert verify_report(path, runs[:2]) == []


def test_a_report_says_how_to_play_again_and_how_to_serve(make_trace, tmp_path):
    trace = make_trace(budget=256, output=20)
    meta = dict(trace.meta) | {
        "scenario": "chat_and_long",
        "seed": 1,
        "engine": {
            "serve_command": "vllm serve x --max-num-batched-tokens 256 --api-key sk-secret",
            "config": {"model": "smollm2", "max_model_len": 4096, "max_num_batched_tokens": 4096, "max_num_seqs": 32},
        },
    }
    run = ReportRun("small", Trace(trace.tables, meta), {"policy": "chunked", "budget": 256, "chunk": 0}, SLO())
    assert again([run]) == "workbench run chat_and_long --seed 1 --knob budget=256 --set max_num_batched_tokens=4096"
    assert serve_commands([run]) == [("small", "vllm serve x --max-num-batched-tokens 256 --api-key HIDDEN")]
    text = write_report(tmp_path / "r.html", [run], title="t", question="q").read_text(encoding="utf-8")
    assert re.search(r'<h2 id="serve">.*?vllm serve x', text, re.DOTALL)
    assert "workbench run chat_and_long --seed 1" in text
    assert "sk-secret" not in text


def test_a_scenario_of_ones_own_is_to_be_saved_first(make_trace):
    trace = make_trace(budget=256, output=5)
    lost = ReportRun("mine", Trace(trace.tables, dict(trace.meta) | {"scenario": "mine_alone"}), {}, SLO())
    assert again([lost]) == "# “mine”: its scenario (mine_alone) is not known any more"
    chats = {"class": "chat", "arrivals": {"kind": "at_once", "count": 1}, "prompt_tokens": 8, "output_tokens": 5}
    kept = {"name": "mine_alone", "seed": 3, "streams": [chats]}
    meta = dict(trace.meta) | {"scenario": "mine_alone", "seed": 3, "workload": {"scenario": kept}}
    run = ReportRun("mine", Trace(trace.tables, meta), {"budget": 256}, SLO())
    assert again([run]).splitlines() == [
        "# save the scenario mine_alone, which stands under Environment, as mine_alone.yaml: JSON is YAML",
        "workbench run mine_alone.yaml --seed 3 --knob budget=256",
    ]


def test_a_load_that_only_has_the_name_of_one_of_ours_is_to_be_saved_too():
    ours = Workbench.open("data/runs/policies-qos")
    assert again([ReportRun.of(ours)]).startswith("workbench run policies --seed 13 --knob budget=160 --knob policy=")
    kept = json.loads(json.dumps(ours.meta["workload"]))
    kept["scenario"]["streams"][0]["prompt_tokens"]["tokens"] = 49
    trace = Trace(ours.trace.tables, {**ours.meta, "workload": kept})
    first, second = again([ReportRun("other VIPs", trace, {}, ours.slo)]).splitlines()
    assert first.startswith("# save the scenario policies, ")
    assert second.startswith("workbench run policies.yaml --seed 13 ")


def test_the_change_that_a_scenario_plans_is_the_runs_setting(make_trace):
    trace = make_trace(budget=512, chunk=64, output=5, second_revision=True)
    planned = {"workload": {"scenario": {"settings_at_s": 1.0}}, "setting": "budget 256"}

    class Recorded:
        slo, folder = SLO(), None

    Recorded.trace = Trace(trace.tables, dict(trace.meta) | planned)
    Recorded.meta = Recorded.trace.meta
    last = trace.knobs.sort_values("revision").iloc[-1]
    made = ReportRun.of(Recorded)
    assert made.label == "budget 256"
    assert made.setting["budget"] == last["budget"]
    assert ReportRun("x", trace, {}, SLO()).setting["budget"] == "several"


def test_a_summary_of_a_file_counts_its_charts(report):
    assert summary_of(report) == {"charts": 13, "runs": 6, "bytes": report.stat().st_size}


def test_a_report_that_had_to_leave_rows_out_says_which_and_is_still_sound(runs, tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.report.html.MOST_BYTES", 100_000)
    monkeypatch.setattr("workbench.report.html._LEAST_DATA", 8_000)
    path = write_report(tmp_path / "r.html", runs[:1], title="t", question="q")
    text = path.read_text(encoding="utf-8")
    assert re.search(r"<td><code>gaps</code></td>", text)
    assert "gaps at evenly spaced ranks" in text
    assert verify_report(path, runs[:1]) == []


@pytest.mark.parametrize("cut", ["data", "specs"])
def test_a_table_or_chart_that_cannot_be_unpacked_is_found(report, tmp_path, cut):
    text = report.read_text(encoding="utf-8")
    place = text.index('"gaps":{"rows"') if cut == "data" else text.index('id="specs">')
    start = text.index('"data":"', place) + 8 if cut == "data" else place + 11
    broken = tmp_path / "broken.html"
    broken.write_text(text[:start] + "AAAA" + text[start + 4 :], encoding="utf-8")
    assert any("cannot be unpacked" in one or "no spec" in one for one in verify_report(broken))
