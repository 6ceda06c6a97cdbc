"""The live charts of an attached server: what it says of itself, from its rows to what is drawn."""

from __future__ import annotations

import copy
import json
import re

import pytest
import vl_convert

from workbench.config import SLO
from workbench.ui.charts import DARK, LIGHT
from workbench.ui.live.rows import LiveRows
from workbench.ui.live.specs import SIGNALS, live_charts, written

STREAMS = {"chat-0": "chat"}
HISTOGRAMS = {
    "ttft_s": {
        "count": 3,
        "p50": {"value": 0.3, "low": 0.1, "high": 1.0},
        "p90": {"value": 0.9, "low": 0.1, "high": 1.0},
        "p99": {"value": None, "low": 20.0, "high": None},
    }
}
IDS = ["gaps", "rates", "queue", "latency"]


def reading(at, tokens, **more):
    return {"t_s": at, "running": 2, "kv_use": 0.25, "prompt_tokens": 10 * tokens, "output_tokens": tokens} | more


@pytest.fixture
def shown():
    """What a board holds after two looks at a server, and the signals."""
    rows = LiveRows(30.0, SLO(), STREAMS, attached=True)
    rows.take("server", [reading(-0.1, 0)])
    rows.histograms = HISTOGRAMS
    held = {}

    def look(now, *readings):
        rows.take("server", list(readings))
        changes = rows.changes(now)
        json.dumps([changes.add, changes.drop], allow_nan=False)
        for chart, sets in changes.add.items():
            for name, some in sets.items():
                held.setdefault(chart, {}).setdefault(name, []).extend(some)
        return held, changes

    return look


def test_rates_are_those_between_readings(shown):
    held, _ = shown(1.0, reading(0.4, 50), reading(0.9, 150, preemptions=0), reading(1.4, 150, preemptions=3))
    found = [(row["t"], row["series"], row["rate"]) for row in held["rates"]["rates"] if row["series"] == "output"]
    assert found == [(0.0, "output", 100.0), (0.4, "output", 100.0), (0.9, "output", 200.0), (1.4, "output", 0.0)]
    assert [row["kv"] for row in held["queue"]["kv"]] == [25.0] * 4
    assert [(row["victims"], row["who"]) for row in held["queue"]["losses"]] == [(3, "not told")]


def test_nothing_is_made_up_of_steps_and_memory(shown):
    held, _ = shown(1.0, reading(0.5, 10))
    assert set(held) == {"rates", "queue", "latency"}


def test_axes_have_room_for_what_is_shown(shown):
    _, changes = shown(1.0, reading(0.4, 500))
    assert changes.signals["rate_top"] >= 10_000
    assert changes.signals["lat_lo"] <= 0.01
    assert changes.signals["lat_hi"] >= 40.0  # beyond the open bucket's bound
    assert set(changes.signals) == set(SIGNALS)


def test_quantiles_change_in_place(shown):
    held, first = shown(1.0, reading(0.5, 10))
    assert [row["row"] for row in held["latency"]["quantiles"]] == ["TTFT P50", "TTFT P90", "TTFT P99"]
    _, again = shown(1.5)
    assert "latency" not in again.add
    assert "latency" in first.add


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_charts_draw_what_the_rows_say(shown, theme):
    held, changes = shown(2.0, reading(0.5, 100), reading(1.0, 200), reading(1.5, 400))
    palette = LIGHT if theme == "light" else DARK
    charts = {one.id: one for one in written(SLO(), STREAMS, label="attached (h:1)", attached=True)}
    assert list(charts) == IDS
    assert [one.timed for one in charts.values()] == [True, True, True, False]
    colours = {"rates": [palette.decode, palette.prefill], "queue": [palette.kv], "latency": [palette.prefill]}
    for name, wanted in colours.items():
        spec = copy.deepcopy(dict(getattr(charts[name], theme))) | {"width": 700}
        asked = {data["name"] for data in _find(spec, "data") if "name" in data} - set(spec.get("datasets", {}))
        assert asked >= set(held[name])
        spec["datasets"] = {**spec.get("datasets", {}), **held[name]}
        spec["params"] = [{**one, "value": changes.signals.get(one["name"], one["value"])} for one in spec["params"]]
        text = vl_convert.vegalite_to_svg(spec, vl_version="6.4")
        assert "attached (h:1)" in text
        assert "NaN" not in text
        assert all(colour in text for colour in wanted)
        assert len(re.findall("<path", text)) > 5


def test_what_the_page_gets_is_compiled():
    for one in live_charts(SLO(), STREAMS, label="attached (h:1)", attached=True):
        assert "/vega/" in one.light["$schema"]
        assert {signal["name"] for signal in one.light["signals"]} >= set(SIGNALS)


def _find(node, key):
    if isinstance(node, dict):
        return [v for k, v in node.items() if k == key] + [hit for v in node.values() for hit in _find(v, key)]
    return [hit for v in node for hit in _find(v, key)] if isinstance(node, list) else []
