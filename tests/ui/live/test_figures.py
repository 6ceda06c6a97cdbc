"""Live figures are those of a finished run, for the requests of the last minute."""

import pytest

from workbench import metrics
from workbench.config import SLO
from workbench.ui.live.figures import LiveFigures, no_kpis

SLO_ = SLO(gap_ms=200, ttft_ms=2000)


def rows(trace, table):
    """A trace's rows as a sink gets them: no engine stamps, which are joined later."""
    some = trace.tables[table].to_pylist()
    hidden = {"tokens": ("engine_s", "step")}.get(table, ())
    return [{name: value for name, value in row.items() if name not in hidden and value is not None} for row in some]


def fed(trace, *, window_s=60.0, until_s=1e9):
    """Figures that were told what happened until then, in ticks of a second."""
    figures, stamps = LiveFigures(SLO_, window_s), {"tokens": "client_s", "steps": "end_s", "requests": "done_s"}
    ends = {row["step"]: row["end_s"] for row in trace.tables["steps"].to_pylist()}
    figures.take(
        "requests", [{k: row[k] for k in ("request", "class", "planned_s")} for row in rows(trace, "requests")]
    )
    for second in range(60):
        for table in ("tokens", "batch", "steps", "requests"):
            at = lambda row: ends[row["step"]] if table == "batch" else row[stamps[table]]  # noqa: B023, E731
            figures.take(table, [r for r in rows(trace, table) if second <= at(r) < second + 1 and at(r) <= until_s])
        if second < until_s:
            figures.kpis(min(second + 1.0, until_s))
    return figures


def value(kpis, label):
    return next(kpi["value"] for kpi in kpis if kpi["label"].startswith(label))


@pytest.fixture(scope="module")
def trace(make_trace):
    return make_trace(budget=1024)


def test_told_bit_by_bit_it_says_what_the_whole_run_says(trace):
    live, whole = metrics.summary(fed(trace).trace(30.0), SLO_), metrics.summary(trace, SLO_)
    for name in ("gap_count", "gap_p50_ms", "gap_p99_ms", "gap_max_ms", "stalls", "stall_causes", "goodput_per_s"):
        assert live[name] == whole[name], name
    for name, of in whole["classes"].items():
        assert live["classes"][name]["ttft_p50_s"] == of["ttft_p50_s"]


def test_a_stream_that_goes_on_has_its_ttft_before_it_ends(trace):
    kpis = fed(trace, until_s=1.2).kpis(1.2)
    first = trace.requests.set_index("request")["first_s"] - trace.requests.set_index("request")["planned_s"]
    chats = first[first.index.str.startswith("chat")]
    assert value(kpis, "TTFT") == f"chat {chats.median():,.2f}"


def test_requests_that_ended_long_ago_are_left_out(trace):
    figures = fed(trace)
    end = trace.requests["done_s"].max()
    assert figures.trace(end + 59.0).requests["request"].nunique() > 0
    assert len(figures.trace(end + 61.0).requests) == 0
    assert value(figures.kpis(end + 61.0), "gap") == "n/a · n/a · n/a"
    assert len(figures.trace(end + 61.0).tokens) == 0


def test_the_words_of_the_strip(trace):
    kpis = fed(trace).kpis(20.0)
    whole = metrics.summary(trace, SLO_)
    gap = [whole[f"gap_{name}_ms"] for name in ("p50", "p99", "max")]
    assert value(kpis, "gap") == " · ".join(f"{ms:,.0f}" for ms in gap)
    assert value(kpis, "stalls") == f"{whole['stalls']} · prefill ({whole['stall_causes']['prefill']})"
    assert "run, 0 wait" in value(kpis, "KV")


def test_before_anything_is_measured_nothing_is_zero():
    kpis = no_kpis(SLO(gap_ms=150), 30.0)
    assert {kpi["value"] for kpi in kpis} == {"n/a"}
    assert all("30 s" in kpi["hint"] for kpi in kpis if "requests of" in kpi["hint"])
    assert any("150 ms" in kpi["hint"] for kpi in kpis)


def test_the_list_of_stalls_is_that_of_the_run_longest_first(trace):
    figures = fed(trace)
    told, whole = figures.stalls(figures.trace(30.0)), metrics.stalls(trace, SLO_)
    assert len(whole) > 2
    assert [row[2] for row in told["rows"]] == sorted(whole["gap_ms"], reverse=True)[:30]
    assert {row[3] for row in told["rows"]} <= set(metrics.CAUSES)
    assert f"prefill {(whole['cause'] == 'prefill').sum()}" in told["text"]
    assert told["text"].endswith(f"explained {(whole['cause'] != 'unknown').mean():.0%}")


def test_without_a_stall_there_is_no_list(trace):
    figures = LiveFigures(SLO(gap_ms=1e6), 60.0)
    assert figures.stalls(figures.trace(1.0)) == {}


def test_the_first_reading_of_the_clients_lateness_outlives_the_window():
    """An empty table would say that nobody measured, and make unknown of every stall behind the engine."""
    figures = LiveFigures(SLO_, window_s=10.0)
    figures.take("client", [{"t_s": 0.0, "late_s": 0.0}, {"t_s": 1.0, "late_s": 0.02}, {"t_s": 95.0, "late_s": 0.03}])
    figures.trace(100.0)  # drops what is older than the window
    assert figures.trace(100.0).client["t_s"].tolist() == [0.0, 95.0]
