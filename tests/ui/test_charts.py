from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import vl_convert
from hypothesis import given
from hypothesis import strategies as st

from workbench.config import SLO
from workbench.trace import Trace, table_of
from workbench.ui import charts
from workbench.ui.charts import (
    Look,
    decimate,
    gap_chart,
    gap_domain,
    long_prefills,
    memory_chart,
    memory_scatter,
    queue_chart,
    step_chart,
)
from workbench.ui.charts.data import revisions, timeline
from workbench.ui.charts.scales import decades, powers, root_ticks
from workbench.ui.charts.theme import DARK, LIGHT

FACTORIES = {
    "gaps": lambda trace, look=None: gap_chart(trace, SLO(), look),
    "steps": step_chart,
    "memory": memory_chart,
    "queue": queue_chart,
    "scatter": lambda trace, look=None: memory_scatter({"a": trace}, look),
}


def rows(chart):
    """All rows of data in a chart, as one list."""
    return [row for data in chart.to_dict()["datasets"].values() for row in data]


def subtitle(chart):
    text = chart.to_dict()["title"]["subtitle"]
    return text if isinstance(text, str) else "\n".join(text)


def svg(chart):
    return vl_convert.vegalite_to_svg(chart.to_dict(), vl_version="6.4")


def with_rows(trace, **tables):
    return Trace(dict(trace.tables) | {name: table_of(name, data) for name, data in tables.items()}, trace.meta)


def long_run(steps=20_000, spike_at=12_345):
    """SYNTHETIC: one stream for long, every step 10 ms and 4 tokens, but one of 9 s, 5,000 tokens and 80 MiB."""
    step, token, now = [], [], 0.0
    for n in range(steps):
        took = 9.0 if n == spike_at else 0.01
        step.append(
            {
                "step": n, "start_s": now, "end_s": now + took, "prefill_tokens": 5000 if n == spike_at else 0,
                "decode_tokens": 4, "running": 40 if n == spike_at else 4, "waiting": 0, "preempted": [],
                "kv_use": 0.99 if n == spike_at else 0.2, "activation_bytes": (80 if n == spike_at else 1) * 2**20,
            }
        )  # fmt: skip
        now += took
        token.append({"request": "a", "index": n, "n": 1, "client_s": now})
    tables = {name: table_of(name, []) for name in ("requests", "batch", "memory", "knobs")}
    return Trace(
        tables | {"steps": table_of("steps", step), "tokens": table_of("tokens", token)}, {"label": "live CPU"}
    )


@pytest.fixture(scope="module")
def trace(make_trace):
    return make_trace(second_revision=True)


@pytest.fixture(scope="module")
def long_trace():
    return long_run()


# --- decimation ---


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(-5, 5), st.sampled_from("ab")), min_size=1, max_size=300),
    st.integers(4, 50),
)
def test_decimate_keeps_the_maximum_of_every_bucket(data, limit):
    frame = pd.DataFrame(data, columns=["t", "v", "g"])
    kept = decimate(frame, "t", ["v"], limit, by="g")
    assert len(kept) <= limit
    assert set(kept.index) <= set(frame.index)
    for name, part in frame.groupby("g"):
        assert kept.loc[kept["g"] == name, "v"].max() == part["v"].max()
    if len(frame) > limit:
        buckets = limit // frame["g"].nunique()
        low, high = frame["t"].min(), frame["t"].max()
        width = (high - low) / buckets or 1.0
        place = np.minimum((frame["t"] - low) // width, buckets - 1)
        expected = frame.groupby([frame["g"], place])["v"].max()
        found = kept.groupby([kept["g"], place[kept.index]])["v"].max()
        pd.testing.assert_series_equal(found, expected)


def test_decimate_survives_nan_and_one_moment():
    frame = pd.DataFrame({"t": [1.0] * 50, "v": [np.nan] * 49 + [3.0]})
    assert decimate(frame, "t", ["v"], 5)["v"].tolist() == [3.0]


@pytest.mark.parametrize("name", FACTORIES)
def test_a_long_run_fits_and_keeps_its_spike(long_trace, name):
    chart = FACTORIES[name](long_trace)
    data = rows(chart)
    assert len(data) <= 2000
    assert len(data) > 500 or name == "scatter"  # whose steps here are of two sizes only
    spike = {"gaps": ("gap", 9000.0), "steps": ("tokens", 5000), "memory": ("mib", 80.0), "queue": ("kv", 99.0),
             "scatter": ("activation_mib", 80.0)}[name]  # fmt: skip
    assert max(row[spike[0]] for row in data if spike[0] in row) == spike[1]
    if name == "steps":
        assert max(row["ms"] for row in data if row.get("ms")) == pytest.approx(9000)
    if name == "queue":
        assert max(row["requests"] for row in data if "requests" in row) == 40
    assert "drawn: the l" in subtitle(chart)  # says that it is thinned


def test_a_look_may_ask_for_fewer_rows(long_trace):
    for name, factory in FACTORIES.items():
        assert len(rows(factory(long_trace, Look(limit=600)))) <= 600, name


# --- what each chart draws ---


def test_gap_chart_has_every_gap_and_stall(trace):
    data = rows(gap_chart(trace, SLO(gap_ms=200)))
    frame = trace.tokens.sort_values(["request", "client_s"])
    gaps = frame.groupby("request")["client_s"].diff().dropna() * 1000
    drawn = [row["gap"] for row in data if "n" in row]
    assert sorted(drawn) == pytest.approx(sorted(gaps), abs=0.006)
    stalls = [row for row in data if "cause" in row]
    assert len(stalls) == (gaps > 200).sum() > 0
    assert all(row["t0"] == pytest.approx(row["t"] - row["gap"] / 1000, abs=1e-3) for row in stalls)
    assert [row["gap"] for row in data if row.keys() == {"gap"}] == [200.0]  # the SLO line


def test_gap_chart_shades_the_long_prefill(trace):
    batch = trace.batch.merge(trace.steps, on="step")
    mine = batch[(batch["request"] == "doc-0") & batch["prefill"]]
    (span,) = long_prefills(trace).to_dict("records")
    assert (span["request"], span["prompt_tokens"], span["steps"]) == ("doc-0", 3000, len(mine))
    assert (span["start"], span["end"]) == (mine["start_s"].min(), mine["end_s"].max())
    assert f"doc-0: 3,000 tokens in {len(mine)} steps" in svg(gap_chart(trace, SLO()))
    assert long_prefills(trace, long_tokens=3001).empty


def test_a_prompt_computed_twice_has_two_spans(trace):
    steps = [
        {"step": n, "start_s": float(n), "end_s": n + 0.5, "prefill_tokens": 0, "decode_tokens": 0} for n in range(5)
    ]
    made = [(0, True), (1, True), (2, False), (3, False), (4, True)]
    batch = [{"step": n, "request": "x", "tokens": 9, "prefill": prefill} for n, prefill in made]
    asked = [{"request": "x", "prompt_tokens": 2000}]
    spans = long_prefills(with_rows(trace, steps=steps, batch=batch, requests=asked))
    assert spans[["start", "end", "steps"]].values.tolist() == [[0.0, 1.5, 2], [4.0, 4.5, 1]]


def test_without_step_records_the_span_is_send_to_first(make_trace):
    attached = make_trace(kind="attached")
    (span,) = long_prefills(attached).to_dict("records")
    doc = attached.requests.set_index("request").loc["doc-0"]
    assert (span["start"], span["end"], span["steps"]) == (doc["sent_s"], doc["first_s"], None)
    assert "(sent → first)" in svg(gap_chart(attached, SLO()))


def test_many_streams_are_told_apart_by_class(make_trace):
    data = rows(gap_chart(make_trace(chats=9, output=20), SLO()))
    assert {row["class"] for row in data if "n" in row} == {"chat", "long"}


def test_gap_domain_holds_all_runs_and_the_slo(make_trace):
    traces = [make_trace(budget=64), make_trace("monolithic", 8192)]
    low, high = gap_domain(traces, SLO())
    gaps = pd.concat([t.tokens.sort_values("client_s").groupby("request")["client_s"].diff() for t in traces]) * 1000
    assert low == 10.0
    assert high == pytest.approx(5 * gaps.max(), rel=0.01)
    assert gap_domain([make_trace(budget=64)], SLO(gap_ms=5000))[1] == 25_000


def test_step_chart_conserves_tokens(trace):
    data = [row for row in rows(step_chart(trace)) if "kind" in row]
    drawn = pd.DataFrame(data).groupby("kind")["tokens"].sum()
    batch = trace.batch
    assert drawn["doc-0"] == batch.loc[(batch["request"] == "doc-0") & batch["prefill"], "tokens"].sum() == 3000
    assert drawn["decode"] == trace.steps["decode_tokens"].sum()
    assert drawn.sum() == trace.steps[["prefill_tokens", "decode_tokens"]].sum().sum()
    for _, bars in pd.DataFrame(data).groupby("step"):  # stacked without a hole, decode at the bottom
        bars = bars.sort_values("y")
        assert bars["y"].tolist() == [0, *bars["y2"].tolist()[:-1]]
        assert "decode" not in bars["kind"].tolist()[1:]


def test_step_chart_without_a_batch_table_still_has_prefill(trace):
    data = rows(step_chart(with_rows(trace, batch=[])))
    drawn = pd.DataFrame([row for row in data if "kind" in row]).groupby("kind")["tokens"].sum()
    assert drawn.to_dict() == {
        "decode": trace.steps["decode_tokens"].sum(),
        "other prefill": trace.steps["prefill_tokens"].sum(),
    }


def test_bars_are_as_long_as_their_steps(trace):
    steps = [{"step": n, "start_s": at, "end_s": at + 0.4, "decode_tokens": 1} for n, at in enumerate([0.0, 0.4, 5.0])]
    look = Look(x_domain=(0.0, 7.2), width=720)  # a pixel is 10 ms
    bars = [row for row in rows(step_chart(with_rows(trace, steps=steps, batch=[], knobs=[]), look)) if "kind" in row]
    assert [(bar["t"], bar["t2"]) for bar in bars] == [(0.0, 0.39), (0.4, 0.79), (5.0, 5.39)]


def test_step_time_line_breaks_where_the_engine_was_idle(trace):
    steps = [
        {"step": n, "start_s": at, "end_s": at + 0.1, "prefill_tokens": 0, "decode_tokens": 1}
        for n, at in enumerate([0.0, 0.1, 5.0])
    ]
    line = [
        row for row in rows(step_chart(with_rows(trace, steps=steps, batch=[], knobs=[]))) if row.keys() == {"t", "ms"}
    ]
    assert [(row["t"], row["ms"]) for row in line if row["ms"] is None] == [(0.2001, None), (5.1001, None)]


def test_memory_scatter_has_every_step_of_every_run(make_trace):
    traces = {"a": make_trace(output=30), "b": make_trace(budget=64, output=30)}
    data = pd.DataFrame([row for row in rows(memory_scatter(traces)) if "setting" in row])
    for name, trace in traces.items():
        steps = trace.steps
        mine = data[data["setting"] == name]
        assert mine["activation_mib"].tolist() == pytest.approx(sorted_mib(steps), abs=0.001)
        assert mine["tokens"].tolist() == (steps["prefill_tokens"] + steps["decode_tokens"]).tolist()


def sorted_mib(steps):
    return (steps.sort_values("start_s")["activation_bytes"] / 2**20).tolist()


def test_memory_scatter_states_the_exponent(trace):
    sizes = [64, 128, 256, 512, 1024, 2048]
    steps = [
        {"step": n, "start_s": float(n), "end_s": n + 0.5, "prefill_tokens": size, "decode_tokens": 0,
         "activation_bytes": 10 * size**2}
        for n, size in enumerate(sizes)
    ]  # fmt: skip
    assert "tokens^2.00" in subtitle(memory_scatter({"square": with_rows(trace, steps=steps)}))


def test_queue_chart_marks_preemptions(trace):
    steps = trace.tables["steps"].to_pylist()
    steps[7]["preempted"] = ["chat-1", "doc-0"]
    chart = queue_chart(with_rows(trace, steps=steps))
    (cross,) = [row for row in rows(chart) if "who" in row]
    assert (cross["victims"], cross["who"]) == (2, "chat-1, doc-0")
    assert "2 preemptions" in subtitle(chart)


# --- what all charts share ---


@pytest.mark.parametrize("name", ["gaps", "steps", "memory", "queue"])
def test_knob_revisions_are_on_every_time_chart(trace, name):
    marks = [row for row in rows(FACTORIES[name](trace)) if "running cap" in row]
    assert [(m["t"], m["label"], m["budget"], m["chunk"]) for m in marks] == [
        (0.0, "rev 1", 1024, "off"),
        (2.01, "rev 2", 512, "off"),
    ]
    text = svg(FACTORIES[name](trace))
    assert ">rev 1<" in text
    assert ">rev 2<" in text


def test_a_revision_that_was_never_applied_is_drawn_where_it_was_sent(trace):
    values = {"budget": 64, "chunk": 32, "max_running": 8, "policy": "decode_first", "prefill_every": 4}
    knobs = [{"revision": 3, "sent_s": 1.5, **values}]
    (rule,) = revisions(with_rows(trace, knobs=knobs)).to_dict("records")
    assert rule == {
        "t": 1.5, "label": "rev 3", "revision": 3, "policy": "decode_first", "budget": 64, "chunk": "32",
        "running cap": 8, "prefill every": "4 steps",
    }  # fmt: skip


@pytest.mark.parametrize("name", FACTORIES)
@pytest.mark.parametrize(
    ("kind", "label"),
    [("live", "live CPU"), ("simulated", "simulated, uncalibrated"), ("attached", "attached")],
)
def test_every_chart_says_where_its_numbers_come_from(make_trace, name, kind, label):
    chart = FACTORIES[name](make_trace(kind=kind, output=20))
    assert subtitle(chart).startswith(label)
    assert label in chart.to_dict()["description"]
    assert label in svg(chart)


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("steps", "attached", ["No step records", "an attached server shows only what its client sees"]),
        ("queue", "attached", ["No KV use and no queue", "an attached server"]),
        ("memory", "attached", ["No memory peak per step", "an attached server"]),
        ("memory", "simulated", ["No memory peak per step", "a simulation does not measure it"]),
        ("scatter", "simulated", ["No memory peak per step", "a simulation does not measure it"]),
    ],
)
def test_what_is_missing_is_said_and_not_drawn_as_zero(make_trace, name, kind, words):
    chart = FACTORIES[name](make_trace(kind=kind, output=20))
    text = svg(chart)
    assert all(word in text for word in words)
    assert "role-axis" not in text


def test_a_column_that_is_missing_is_named(trace):
    steps = [row | {"kv_use": None, "waiting": None} for row in trace.tables["steps"].to_pylist()]
    chart = queue_chart(with_rows(trace, steps=steps))
    assert "not recorded: KV use, waiting" in subtitle(chart)
    assert not any("kv" in row and row["kv"] is not None for row in rows(chart))
    assert {row["series"] for row in rows(chart) if "series" in row} == {"running"}


def test_an_empty_trace_has_charts(trace):
    empty = with_rows(trace, **dict.fromkeys(trace.tables, ()))
    for name, factory in FACTORIES.items():
        assert "<text" in svg(factory(empty)), name
    assert "no run" in subtitle(memory_scatter({}))


def test_a_run_that_failed_says_so(trace):
    assert subtitle(step_chart(Trace(trace.tables, trace.meta | {"status": "failed"}))).startswith(
        "live CPU, run failed"
    )


@pytest.mark.parametrize("name", ["gaps", "steps", "memory", "queue"])
def test_time_axes_line_up(trace, name):
    spec = FACTORIES[name](trace, Look(width=500)).to_dict()
    assert spec["width"] == 500
    end = max(trace.steps["end_s"].max(), trace.requests["done_s"].max())
    domains = [tuple(scale) for scale in find(spec, "domain") if isinstance(scale, list) and scale[0] == 0]
    assert (0.0, end) in domains
    (extent,) = {axis["minExtent"] for axis in find(spec, "axis") if isinstance(axis, dict) and "minExtent" in axis}
    assert extent == 44


def find(node, key):
    """All values under a key, at any depth."""
    if isinstance(node, dict):
        return [v for k, v in node.items() if k == key] + [hit for v in node.values() for hit in find(v, key)]
    return [hit for v in node for hit in find(v, key)] if isinstance(node, list) else []


@pytest.mark.parametrize(("theme", "palette"), [("light", LIGHT), ("dark", DARK)])
def test_colours_have_fixed_meanings(trace, theme, palette):
    look = Look(theme=theme)
    drawn = {name: svg(factory(trace, look)) for name, factory in FACTORIES.items()}
    assert palette.decode in drawn["gaps"]
    assert palette.alert in drawn["gaps"]
    assert palette.prefill in drawn["gaps"]
    assert palette.decode in drawn["steps"]
    assert palette.prefill in drawn["steps"]
    assert palette.memory in drawn["memory"]
    assert palette.memory in drawn["scatter"]
    assert palette.kv in drawn["queue"]
    assert all(f'fill="{palette.ground}"' in text for text in drawn.values())


def test_shared_domains_are_obeyed(trace):
    look = Look(x_domain=(0.0, 99.0), y_domain=(1.0, 1e6), y2_domain=(1.0, 1e5))
    for name in ("gaps", "steps"):
        domains = [
            list(d) for d in find(FACTORIES[name](trace, look).to_dict(), "domain") if isinstance(d, list | tuple)
        ]
        assert [0.0, 99.0] in domains
        assert [1.0, 1e6] in domains


def test_a_bare_chart_can_be_concatenated(trace):
    look = Look(bare=True, zoom=False)
    both = gap_chart(trace, SLO(), look) & step_chart(trace, look)
    assert svg_text(both).count("rev 2") == 2
    assert "config" not in replace_config(gap_chart(trace, SLO(), look))


def svg_text(chart):
    return vl_convert.vegalite_to_svg(chart.to_dict(), vl_version="6.4").replace("aria-label", "")


def replace_config(chart):
    return {key for key in chart.to_dict() if key == "config" and "font" in chart.to_dict()["config"]}


def test_steps_without_an_end_are_left_out(trace):
    steps = trace.tables["steps"].to_pylist()
    steps[-1]["end_s"] = None
    steps[0]["start_s"] = None
    frame = timeline(with_rows(trace, steps=steps))
    assert len(frame) == len(steps) - 1
    assert frame["start"].iloc[0] == steps[0]["scheduled_s"]


def test_axis_helpers():
    assert decades(pd.Series([0.0, 26.0, 7811.0])) == (10.0, 10000.0)
    assert decades(pd.Series([], dtype=float)) == (1.0, 10.0)
    assert powers((10.0, 39000.0)) == [10.0, 100.0, 1000.0, 10000.0]
    assert root_ticks(3900, powers_of_two=True)[-1] == 2048
    assert root_ticks(50)[0] == 0.0
    assert all(np.diff(np.sqrt(root_ticks(50))) >= 0.11 * np.sqrt(50))


def test_no_widgets_are_imported():
    files = list(Path(charts.__file__).parent.glob("*.py"))
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    assert "altair" in names
    assert not {name.split(".")[0] for name in names} & {"ipywidgets", "anywidget", "IPython", "traitlets"}


def test_looks_are_plain_data():
    assert replace(Look(), theme="dark").palette == DARK


# --- what memory is made of ---


GIB = 2**30
SPLIT = {"rank": 0, "weights_bytes": GIB // 2, "kv_bytes": 2 * GIB, "graphs_bytes": 0}


def with_memory(trace, samples, split=None):
    memory = [{"t_s": at, "source": source, "bytes": size} for at, source, size in samples]
    meta = {**trace.meta, "engine": {"memory_split": split}}
    return Trace(with_rows(trace, memory=memory).tables, meta)


def test_memory_chart_draws_what_the_processes_hold(trace):
    samples = [(0.5, "host engine rss", 3 * GIB), (1.0, "host available", 9 * GIB), (1.5, "host engine rss", 4 * GIB)]
    chart = memory_chart(with_memory(trace, samples))
    assert [(row["t"], row["gib"]) for row in rows(chart) if "gib" in row] == [(0.5, 3.0), (1.5, 4.0)]
    assert "resident up to 4,096 MiB (line)" in subtitle(chart)
    assert "resident, GiB (line)" in svg(chart)
    assert "resident as a line" in chart.to_dict()["description"]


def test_memory_chart_prefers_devices(trace):
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


def test_memory_chart_stacks_what_it_is_made_of(trace):
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


def test_memory_chart_without_samples_or_split_has_one_axis(trace):
    assert "GiB" not in svg(memory_chart(with_memory(trace, [], None)))
    assert "GiB" not in svg(memory_chart(trace))


def test_a_long_memory_line_is_thinned_and_keeps_its_peak(trace):
    samples = [(n / 1000, "host engine rss", 9 * GIB if n == 3210 else GIB) for n in range(6000)]
    data = rows(memory_chart(with_memory(trace, samples)))
    levels = [row["gib"] for row in data if "gib" in row]
    assert max(levels) == 9.0
    assert len(data) <= 2000
