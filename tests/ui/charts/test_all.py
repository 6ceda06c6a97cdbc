"""What all charts share: bounded size, origin, theme, knobs, axes, and words for what is missing."""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import vl_convert

from workbench.config import SLO
from workbench.trace import Trace
from workbench.ui import charts
from workbench.ui.charts import (
    Look,
    crossover_chart,
    gap_chart,
    history_chart,
    memory_chart,
    memory_scatter,
    mfu_chart,
    policy_chart,
    queue_chart,
    step_chart,
)
from workbench.ui.charts.scales import decades, powers, root_ticks
from workbench.ui.charts.theme import DARK, LIGHT

FACTORIES = {
    "gaps": lambda trace, look=None: gap_chart(trace, SLO(), look),
    "steps": step_chart,
    "memory": memory_chart,
    "queue": queue_chart,
    "scatter": lambda trace, look=None: memory_scatter({"a": trace}, look),
}
LAB = {
    "history": history_chart,
    "mfu": mfu_chart,
    "crossover": crossover_chart,
    "policies": lambda trace, look=None: policy_chart({"a": trace, "b": trace}, SLO(), look),
}
ALL = FACTORIES | LAB
TIME = ["gaps", "steps", "memory", "queue", "history"]


@pytest.mark.parametrize("name", FACTORIES)
def test_a_long_run_fits_and_keeps_its_spike(long_trace, name, rows, subtitle):
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


def test_a_look_may_ask_for_fewer_rows(long_trace, rows):
    for name, factory in FACTORIES.items():
        assert len(rows(factory(long_trace, Look(limit=600)))) <= 600, name


@pytest.mark.parametrize("name", TIME)
def test_knob_revisions_are_on_every_time_chart(trace, name, rows, svg):
    marks = [row for row in rows(ALL[name](trace)) if "running cap" in row]
    assert [(m["t"], m["label"], m["budget"], m["chunk"]) for m in marks] == [
        (0.0, "rev 1", 1024, "off"),
        (2.01, "rev 2", 512, "off"),
    ]
    text = svg(ALL[name](trace))
    assert ">rev 1<" in text
    assert ">rev 2<" in text


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    ("kind", "label"),
    [("live", "live CPU"), ("simulated", "simulated, uncalibrated"), ("attached", "attached")],
)
def test_every_chart_says_where_its_numbers_come_from(make_trace, name, kind, label, subtitle, svg):
    chart = ALL[name](make_trace(kind=kind, output=20))
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
        ("history", "attached", ["No phases of requests", "an attached server"]),
        ("mfu", "live", ["No MFU in this trace", "the run does not say"]),
        ("scatter", "simulated", ["No memory peak per step", "a simulation does not measure it"]),
    ],
)
def test_what_is_missing_is_said_and_not_drawn_as_zero(make_trace, name, kind, words, svg):
    chart = ALL[name](make_trace(kind=kind, output=20))
    text = svg(chart)
    assert all(word in text for word in words)
    assert "role-axis" not in text


def test_an_empty_trace_has_charts(trace, subtitle, svg, with_rows):
    empty = with_rows(trace, **dict.fromkeys(trace.tables, ()))
    for name, factory in ALL.items():
        assert "<text" in svg(factory(empty)), name
    assert "no run" in subtitle(memory_scatter({}))


def test_a_run_that_failed_says_so(trace, subtitle):
    assert subtitle(step_chart(Trace(trace.tables, trace.meta | {"status": "failed"}))).startswith(
        "live CPU, run failed"
    )


@pytest.mark.parametrize("name", TIME)
def test_time_axes_line_up(trace, name, find):
    spec = ALL[name](trace, Look(width=500)).to_dict()
    assert spec["width"] == 500
    end = max(trace.steps["end_s"].max(), trace.requests["done_s"].max())
    domains = [tuple(scale) for scale in find(spec, "domain") if isinstance(scale, list) and scale[0] == 0]
    assert (0.0, end) in domains
    (extent,) = {axis["minExtent"] for axis in find(spec, "axis") if isinstance(axis, dict) and "minExtent" in axis}
    assert extent == 44


@pytest.mark.parametrize(("theme", "palette"), [("light", LIGHT), ("dark", DARK)])
def test_colours_have_fixed_meanings(trace, theme, palette, svg):
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


def test_shared_domains_are_obeyed(trace, find):
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


def test_axis_helpers():
    assert decades(pd.Series([0.0, 26.0, 7811.0])) == (10.0, 10000.0)
    assert decades(pd.Series([], dtype=float)) == (1.0, 10.0)
    assert powers((10.0, 39000.0)) == [10.0, 100.0, 1000.0, 10000.0]
    assert root_ticks(3900, powers_of_two=True)[-1] == 2048
    assert root_ticks(50)[0] == 0.0
    assert all(np.diff(np.sqrt(root_ticks(50))) >= 0.11 * np.sqrt(50))


def test_small_peaks_have_ticks_of_their_own(trace, svg):
    """Vega rounds the ticks of an axis to their distance, where its format does not say how many digits there are."""
    steps = trace.tables["steps"]
    column = pa.array([1 << 19] * len(steps), pa.int64())
    steps = steps.set_column(steps.schema.get_field_index("activation_bytes"), "activation_bytes", column)
    chart = memory_scatter({"small": Trace({**trace.tables, "steps": steps}, trace.meta)})
    labels = re.findall(r">([\d.,]+)</text>", svg(chart))
    assert {"0.05", "0.2", "0.5"} <= set(labels), labels


def test_no_widgets_are_imported():
    files = list(Path(charts.__file__).parent.glob("*.py"))
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    assert "altair" in names
    assert not {name.split(".")[0] for name in names} & {"ipywidgets", "anywidget", "IPython", "traitlets"}


def test_looks_are_plain_data():
    assert replace(Look(), theme="dark").palette == DARK
