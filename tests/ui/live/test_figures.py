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


def endless(figures, *, until_s, streams=("a", "b"), with_steps=True):
    """Streams that go on, a token of each in every step of 0.1 s; the client sees it 10 ms later."""
    figures.take("requests", [{"request": name, "class": "chat", "planned_s": 0.0} for name in streams])
    for k in range(round(until_s * 10)):
        at = 0.1 * (k + 1)
        if with_steps:
            figures.take("steps", [{"step": k, "start_s": at - 0.1, "end_s": at, "decode_tokens": len(streams)}])
            parts = [{"step": k, "request": name, "tokens": 1, "prefill": False, "emitted": 1} for name in streams]
            figures.take("batch", parts)
        arrived = [{"request": name, "index": k, "n": 1, "client_s": at + 0.01} for name in streams]
        figures.take("tokens", arrived)
        if k % 10 == 9:
            figures.trace(at + 0.02)
    return figures


def test_streams_that_go_on_for_long_do_not_pile_up_and_their_newest_arrivals_have_the_steps_that_made_them():
    figures = endless(LiveFigures(SLO_, 5.0, most_tokens=100), until_s=90.0)
    trace = figures.trace(90.02)
    tokens = trace.tokens
    assert len(tokens) == 100, "50 arrivals of each of two streams"
    assert sorted(tokens["index"].unique()) == list(range(850, 900))
    assert (tokens["step"] == tokens["index"]).all(), "in this load the k-th step makes the k-th token"
    assert tokens["engine_s"].tolist() == pytest.approx((0.1 * (tokens["index"] + 1)).tolist())
    held = {name: figures._tables[name].num_rows for name in ("tokens", "steps", "batch")}
    # Steps of 5 s before the first of these arrivals at 85.11 s, and a row for all that each stream got before.
    assert held == {"tokens": 100, "steps": 99, "batch": 2 * 99 + 2}
    assert metrics.summary(trace, SLO_)["gap_max_ms"] == pytest.approx(100.0)
    assert metrics.summary(trace, SLO_)["gap_count"] == 2 * 49


def test_requests_of_a_closed_loop_that_wait_for_their_turn_hold_no_steps():
    figures = LiveFigures(SLO_, 5.0)
    figures.take("requests", [{"request": "later", "class": "chat", "planned_s": 0.0}])
    for second in range(200):
        name = f"r{second}"
        figures.take("requests", [{"request": name, "class": "chat", "planned_s": float(second)}])
        figures.take("steps", [{"step": second, "start_s": second + 0.1, "end_s": second + 0.5}])
        figures.take("client", [{"t_s": second + 0.5, "late_s": 0.006}])
        figures.take("tokens", [{"request": name, "index": 0, "n": 1, "client_s": second + 0.6}])
        figures.take("requests", [{"request": name, "first_s": second + 0.6, "done_s": second + 0.7, "status": "ok"}])
        figures.trace(second + 1.0)
    # The oldest request in the window began at 195.6 s; kept are the steps from a minute before that on.
    assert figures._tables["steps"]["step"].to_pylist() == list(range(136, 200))
    assert figures._tables["client"].num_rows == 64 + 1
