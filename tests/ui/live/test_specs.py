from __future__ import annotations

import copy
import re
from xml.etree import ElementTree

import pytest
import vl_convert

from workbench.config import SLO
from workbench.ui.charts import DARK, LIGHT, Look, gap_chart, memory_chart, queue_chart, run_span, step_chart
from workbench.ui.live import specs as live_specs
from workbench.ui.live.rows import LiveRows
from workbench.ui.live.specs import SIGNALS, live_charts, series_names, written

STREAMS = {"chat-0": "chat", "doc-0": "long"}
SPLIT = {"weights_bytes": 300 * 2**20, "kv_bytes": 2**30}
IDS = ["gaps", "steps", "memory", "queue"]


def specs(**more):
    return {chart.id: chart for chart in written(SLO(gap_ms=150), STREAMS, **{"label": "live CPU", **more})}


def filled(spec, rows, signals, width=700):
    """A live spec with rows in it, of a width of its own, since vl_convert has no page that could hold it."""
    spec = copy.deepcopy(dict(spec)) | {"width": width}
    spec["datasets"] = {**spec.get("datasets", {}), **{name: list(some.values()) for name, some in rows.items()}}
    spec["params"] = [{**param, "value": signals.get(param["name"], param["value"])} for param in spec["params"]]
    return spec


def svg(spec):
    return vl_convert.vegalite_to_svg(spec, vl_version="6.4")


def find(node, key):
    """All values under a key, at any depth."""
    if isinstance(node, dict):
        return [v for k, v in node.items() if k == key] + [hit for v in node.values() for hit in find(v, key)]
    return [hit for v in node for hit in find(v, key)] if isinstance(node, list) else []


@pytest.fixture(scope="module")
def trace(make_trace):
    return make_trace(budget=256, output=60, second_revision=True)


@pytest.fixture(scope="module")
def board(trace, played):
    rows = LiveRows(30.0, SLO(gap_ms=150), STREAMS, SPLIT)
    for at in (1.0, 2.0, 3.0):
        rows.take("memory", [{"t_s": at, "source": "host engine rss", "bytes": 2 * 2**30}])
    rows.take("steps", [{"step": -1, "start_s": 0.0, "end_s": 0.05, "decode_tokens": 1, "preempted": ["chat-0"]}])
    return played(trace, rows, run_span(trace)[1] + 0.2)


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_spec_draws_the_rows_that_live_rows_makes(board, name, theme):
    text = svg(filled(getattr(specs()[name], theme), board.rows[name], board.signals))
    palette = LIGHT if theme == "light" else DARK
    words, colours = {
        "gaps": (
            ["SLO 150 ms", "rev 2", "doc-0: 3,000 tokens in", ">max ", "chat-0"],
            [palette.decode, palette.alert, palette.prefill],
        ),
        "steps": (["rev 2", "doc-0", "other prefill"], [palette.decode, palette.prefill, palette.ink]),
        "memory": (["weights", "KV pool", "resident"], [palette.memory, palette.weights, palette.kv]),
        "queue": (["running", "waiting"], [palette.kv, palette.alert]),
    }[name]
    assert all(word in text for word in [*words, "live CPU"])
    assert all(colour in text for colour in [*colours, f'fill="{palette.ground}"'])
    assert len(re.findall(r"<path", text)) > {"queue": 30}.get(name, 60)
    assert "NaN" not in text


@pytest.mark.parametrize("name", IDS)
def test_every_dataset_of_a_spec_gets_rows_and_every_dataset_of_rows_is_drawn(board, name):
    asked = {data["name"] for data in find(specs()[name].light, "data") if "name" in data}
    inline = set(specs()[name].light.get("datasets", {}))
    assert asked - inline == set(board.rows[name])


def test_charts_are_the_four_with_plain_data():
    charts = specs()
    assert list(charts) == IDS
    for name, chart in charts.items():
        assert chart.title
        assert len(chart.description) > 40
        for spec in (chart.light, chart.dark):
            assert spec["width"] == "container"
            assert chart.description in spec["description"]
            assert {param["name"]: param["value"] for param in spec["params"]} == SIGNALS
            rows = [row for data in spec.get("datasets", {}).values() for row in data]
            assert rows == ([{"gap": 150.0}] if name == "gaps" else [])  # the promise is known before the run


def test_time_axes_line_up(board):
    """The plots, seen in pixels, begin and end at the same places."""
    frames = []
    for name, chart in specs().items():
        root = ElementTree.fromstring(svg(filled(chart.light, board.rows[name], board.signals)))
        lines = [
            line for line in root.iter("{http://www.w3.org/2000/svg}g") if "translate" in line.get("transform", "")
        ]
        frames.append((root.get("width"), lines[0].get("transform").split(",")[0]))
    assert len(set(frames)) == 1


def test_a_moved_window_moves_the_axes(board):
    spec = specs()["steps"].light
    text = svg(filled(spec, board.rows["steps"], board.signals | {"t0": 100.0, "t1": 130.0, "tokens_top": 5000.0}))
    assert ">125 s<" in text
    assert ">4,096<" in text
    assert ">0 s<" not in text
    assert ">rev 2<" in text  # in force, at the left edge


@pytest.mark.parametrize(
    ("low", "high", "ticks"), [(1.0, 1000.0, ["1", "10", "100", "1,000"]), (0.1, 30.0, ["0.1", "1", "10"])]
)
def test_ticks_of_a_log_axis_are_the_powers_in_it(low, high, ticks):
    text = svg(filled(specs()["gaps"].light, {}, {"gap_lo": low, "gap_hi": high}))
    found = [word for word in re.findall(r">([^<]+)</text>", text) if re.fullmatch(r"[\d.,]+", word)]
    assert found == ticks


def test_the_label_says_what_the_line_is():
    assert "device used, GiB" in str(specs(label="live GPU")["memory"].light)
    assert "resident, GiB" in str(specs(label="live CPU")["memory"].light)
    assert "graphs" in str(specs(label="live GPU")["memory"].light)
    for chart in specs(label="live GPU").values():
        assert chart.light["title"]["subtitle"].startswith("live GPU · ")


def test_series_are_streams_or_classes():
    assert series_names({}) == ({}, ["other"])
    assert series_names(STREAMS) == ({"chat-0": "chat-0", "doc-0": "doc-0"}, ["chat-0", "doc-0", "other"])
    many = {f"r{n}": ("long" if n == 3 else "chat") for n in range(7)}
    assert series_names(many) == (many, ["chat", "long", "other"])


def test_static_and_live_are_drawn_by_the_same_marks(trace):
    static = {
        "gaps": gap_chart(trace, SLO(gap_ms=150)),
        "steps": step_chart(trace),
        "memory": memory_chart(trace),
        "queue": queue_chart(trace),
    }
    for name, chart in specs().items():
        marks = {str(sorted(mark.items(), key=str)) for mark in find(static[name].to_dict(), "mark")}
        live = {str(sorted(mark.items(), key=str)) for mark in find(chart.light, "mark")}
        assert len(marks & live) >= 3, name


def test_the_dark_spec_is_the_one_that_a_dark_look_draws():
    look = Look(theme="dark", height=150, live=True)
    names = series_names(STREAMS)[1]
    drawn = {
        name: live_specs._spec(name, chart)
        for name, *_, chart in live_specs._charts(SLO(gap_ms=150), names, "live CPU", look)
    }
    assert {name: chart.dark for name, chart in specs().items()} == drawn


def test_what_the_page_gets_is_compiled_and_draws_the_same(board):
    compiled = {chart.id: chart for chart in live_charts(SLO(gap_ms=150), STREAMS, label="live CPU")}
    for name, chart in specs().items():
        made = compiled[name]
        assert (made.title, made.description, made.note) == (chart.title, chart.description, chart.note)
        assert made.note.startswith("live CPU · ")
        for vega in (made.light, made.dark):
            assert "/vega/" in vega["$schema"]
            assert {signal["name"]: signal.get("value") for signal in vega["signals"]}.items() >= SIGNALS.items()
            assert {data["name"] for data in vega["data"]} >= set(board.rows[name])
        bare = {
            key: value for key, value in filled(chart.dark, board.rows[name], board.signals).items() if key != "title"
        }
        vega = copy.deepcopy(dict(made.dark)) | {"width": 700}
        for data in vega["data"]:
            data |= (
                {"values": list(board.rows[name][data["name"]].values())} if data["name"] in board.rows[name] else {}
            )
        for signal in vega["signals"]:
            signal |= {"value": board.signals[signal["name"]]} if signal["name"] in board.signals else {}
        marks = [re.findall(r"<(path|text|line|rect)", text) for text in (svg(bare), vl_convert.vega_to_svg(vega))]
        assert len(marks[0]) == len(marks[1]) > 20
