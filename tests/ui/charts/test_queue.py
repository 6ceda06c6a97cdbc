"""KV use, the queue and preemptions."""

from __future__ import annotations

from workbench.ui.charts import queue_chart


def test_queue_chart_marks_preemptions(trace, rows, subtitle, with_rows):
    steps = trace.tables["steps"].to_pylist()
    steps[7]["preempted"] = ["chat-1", "doc-0"]
    chart = queue_chart(with_rows(trace, steps=steps))
    (cross,) = [row for row in rows(chart) if "who" in row]
    assert (cross["victims"], cross["who"]) == (2, "chat-1, doc-0")
    assert "2 preemptions" in subtitle(chart)


def test_a_column_that_is_missing_is_named(trace, rows, subtitle, with_rows):
    steps = [row | {"kv_use": None, "waiting": None} for row in trace.tables["steps"].to_pylist()]
    chart = queue_chart(with_rows(trace, steps=steps))
    assert "not recorded: KV use, waiting" in subtitle(chart)
    assert not any("kv" in row and row["kv"] is not None for row in rows(chart))
    assert {row["series"] for row in rows(chart) if "series" in row} == {"running"}
