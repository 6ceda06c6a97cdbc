"""The memory charts: peaks of steps, what is held, and what that is made of."""

from __future__ import annotations

import pandas as pd
import pytest

from workbench.ui.charts import memory_chart, memory_scatter
from workbench.ui.charts.theme import LIGHT

GIB = 2**30
SPLIT = {"rank": 0, "weights_bytes": GIB // 2, "kv_bytes": 2 * GIB, "graphs_bytes": 0}


def test_memory_scatter_has_every_step_of_every_run(make_trace, rows):
    traces = {"a": make_trace(output=30), "b": make_trace(budget=64, output=30)}
    data = pd.DataFrame([row for row in rows(memory_scatter(traces)) if "setting" in row])
    for name, trace in traces.items():
        steps = trace.steps
        mine = data[data["setting"] == name]
        assert mine["activation_mib"].tolist() == pytest.approx(sorted_mib(steps), abs=0.001)
        assert mine["tokens"].tolist() == (steps["prefill_tokens"] + steps["decode_tokens"]).tolist()


def test_memory_scatter_states_the_exponent(trace, subtitle, with_rows):
    sizes = [64, 128, 256, 512, 1024, 2048]
    steps = [
        {"step": n, "start_s": float(n), "end_s": n + 0.5, "prefill_tokens": size, "decode_tokens": 0,
         "activation_bytes": 10 * size**2}
        for n, size in enumerate(sizes)
    ]  # fmt: skip
    assert "tokens^2.00" in subtitle(memory_scatter({"square": with_rows(trace, steps=steps)}))


def test_memory_chart_draws_what_the_processes_hold(trace, rows, subtitle, svg, with_memory):
    samples = [(0.5, "host engine rss", 3 * GIB), (1.0, "host available", 9 * GIB), (1.5, "host engine rss", 4 * GIB)]
    chart = memory_chart(with_memory(trace, samples))
    assert [(row["t"], row["gib"]) for row in rows(chart) if "gib" in row] == [(0.5, 3.0), (1.5, 4.0)]
    assert "resident up to 4,096 MiB (line)" in subtitle(chart)
    assert "resident, GiB (line)" in svg(chart)
    assert "resident as a line" in chart.to_dict()["description"]


def test_memory_chart_prefers_devices(trace, rows, subtitle, with_memory):
    samples = [
        (0.5, "host engine rss", GIB),
        (0.5, "GPU 0 used", 3 * GIB),
        (0.5, "GPU 0 reserved", GIB),
        (0.5, "GPU 1 used", 5 * GIB),
        (0.6, "GPU 1 used", None),
        (0.5, "host used (unified memory of GPU 0)", GIB),
    ]
    chart = memory_chart(with_memory(trace, samples))
    assert {(row["source"], row["gib"]) for row in rows(chart) if "gib" in row} == {
        ("GPU 0 used", 3.0),
        ("GPU 1 used", 5.0),
    }
    assert "device used up to 5,120 MiB" in subtitle(chart)


def test_memory_chart_stacks_what_it_is_made_of(trace, rows, subtitle, svg, with_memory):
    chart = memory_chart(with_memory(trace, [], SPLIT))
    peak = trace.steps["activation_bytes"].max()
    parts = {row["part"]: (row["y"], row["y2"]) for row in rows(chart) if "part" in row}
    assert parts == {
        "weights": (0.0, 0.5),
        "KV pool": (0.5, 2.5),
        "activation peak": (2.5, pytest.approx(2.5 + peak / GIB, abs=1e-4)),
    }
    assert f"bar: weights 512, KV pool 2,048, activation peak {peak / 2**20:,.0f} MiB" in subtitle(chart)
    text = svg(chart)
    assert LIGHT.weights in text
    assert "engine, GiB (bar)" in text
    assert "what the engine's memory is made of" in chart.to_dict()["description"]


def test_memory_chart_without_samples_or_split_has_one_axis(trace, svg, with_memory):
    assert "GiB" not in svg(memory_chart(with_memory(trace, [], None)))
    assert "GiB" not in svg(memory_chart(trace))


def test_a_long_memory_line_is_thinned_and_keeps_its_peak(trace, rows, with_memory):
    samples = [(n / 1000, "host engine rss", 9 * GIB if n == 3210 else GIB) for n in range(6000)]
    data = rows(memory_chart(with_memory(trace, samples)))
    levels = [row["gib"] for row in data if "gib" in row]
    assert max(levels) == 9.0
    assert len(data) <= 2000


def sorted_mib(steps):
    return (steps.sort_values("start_s")["activation_bytes"] / 2**20).tolist()
