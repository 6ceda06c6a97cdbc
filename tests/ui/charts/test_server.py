"""What an attached server said of itself: rates, KV use and queue, and quantiles with their buckets."""

from __future__ import annotations

import re

import pytest

from workbench.report.svg import static_svg
from workbench.trace import Trace
from workbench.ui.charts import DARK, LIGHT, Look, server_latency_chart, server_queue_chart, server_rate_chart
from workbench.ui.charts.server import latency_span

# Twice a second but for one reading that did not come; then the server was started again, and counts from 0.
READINGS = [
    {"t_s": -0.05, "running": 0, "waiting": 0, "kv_use": 0, "prompt_tokens": 0, "output_tokens": 0, "preemptions": 0},
    {"t_s": 0.45, "running": 4, "waiting": 1, "kv_use": 0.5, "prompt_tokens": 1000, "output_tokens": 10,
     "preemptions": 0},
    {"t_s": 1.45, "running": 5, "waiting": 0, "kv_use": 0.9, "prompt_tokens": 1000, "output_tokens": 60,
     "preemptions": 2},
    {"t_s": 1.95, "running": 1, "waiting": 0, "kv_use": 0.1, "output_tokens": 5},
]  # fmt: skip
HISTOGRAMS = {
    "ttft_s": {
        "count": 12,
        "p50": {"value": 0.3, "low": 0.1, "high": 1.0},
        "p90": {"value": 4.0, "low": 1.0, "high": 10.0},
        "p99": {"value": None, "low": 10.0, "high": None},
    },
    "gap_s": {"count": 340, **{share: {"value": 0.005, "low": 0.0, "high": 0.01} for share in ("p50", "p90", "p99")}},
}
CHARTS = {"rates": server_rate_chart, "queue": server_queue_chart, "latency": server_latency_chart}


@pytest.fixture(scope="module")
def attached(make_trace, with_rows):
    trace = with_rows(make_trace(kind="attached", output=20), server=READINGS)
    engine = {"attached": {"server": "vLLM 9.9.9", "histograms": HISTOGRAMS}}
    return Trace(trace.tables, {**trace.meta, "label": "attached (h:1)", "engine": engine})


def test_rates_are_differences_of_counters_over_the_time_between_readings(attached, rows):
    found = [(row["t"], row["series"], row["rate"]) for row in rows(server_rate_chart(attached))]
    assert found == [
        (0.0, "prompt", 2000.0),  # 1,000 tokens in half a second; a line needs two ends
        (0.45, "prompt", 2000.0),
        (0.0, "output", 20.0),
        (0.45, "output", 20.0),
        (1.45, "prompt", 0.0),
        (1.45, "output", 50.0),  # 50 in a second: a reading is missing
        (1.95, "prompt", None),  # not told
        (1.95, "output", None),  # the counter went back
    ]


def test_kv_use_the_queue_and_preemptions_are_those_of_the_readings(attached, rows, subtitle):
    chart = server_queue_chart(attached)
    found = rows(chart)
    assert [(row["t"], row["kv"]) for row in found if "kv" in row] == [(0, 0), (0.45, 50), (1.45, 90), (1.95, 10)]
    of = {name: [row["requests"] for row in found if row.get("series") == name] for name in ("running", "waiting")}
    assert of == {"running": [0, 4, 5, 1], "waiting": [0, 1, 0, 0]}
    (cross,) = [row for row in found if "victims" in row]
    assert (cross["t"], cross["victims"], cross["who"]) == (1.45, 2, "not told")
    assert subtitle(chart) == "attached (h:1) · KV use up to 90 % · 2 preemptions · 4 readings"


def test_a_quantile_is_drawn_as_the_bucket_that_it_lies_in(attached, rows, svg, subtitle):
    chart = server_latency_chart(attached, Look(width=400, x_domain=(0.001, 10.0), zoom=False))
    bands = {row["row"]: (row["low"], row["high"], row["value"]) for row in rows(chart) if "low" in row}
    assert bands["TTFT P50"] == (0.1, 1.0, 0.3)
    assert bands["TTFT P99"] == (10.0, None, None)
    assert list(bands) == [f"{what} {share}" for what in ("TTFT", "gap") for share in ("P50", "P90", "P99")]
    assert "attached (h:1) · counted: TTFT 12, gap 340" in subtitle(chart)
    text = svg(chart)
    # Four decades on 400 px: from 0.1 to 1 s is the third hundred; from nothing to 0.01 s the first.
    boxes = [
        (float(x), float(wide))
        for x, wide in re.findall(r'aria-roledescription="bar"[^>]*d="M([\d.]+),[\d.]+h([\d.]+)v', text)
    ] or [(float(x), float(wide)) for x, wide in re.findall(r'<path d="M([\d.]+),[\d.]+h([\d.]+)v9h', text)]
    assert (200.0, 100.0) in [(round(x, 3), round(wide, 3)) for x, wide in boxes]
    assert [(round(x, 3), round(wide, 3)) for x, wide in boxes].count((0.0, 100.0)) == 3
    assert text.count(LIGHT.prefill) > 3
    assert "TTFT P99" in text


def test_our_clients_figures_stand_beside_the_servers(attached, rows, svg):
    requests = attached.requests
    sent = (requests["first_s"] - requests["sent_s"]).median()
    seen = {row["row"]: row["value"] for row in rows(server_latency_chart(attached)) if set(row) == {"row", "value"}}
    assert seen["TTFT P50"] == pytest.approx(sent, abs=1e-5)
    assert set(seen) == {f"{what} {share}" for what in ("TTFT", "gap") for share in ("P50", "P90", "P99")}


def test_an_open_bucket_has_room_beyond_its_bound(attached):
    low, high = latency_span([attached])
    assert high >= 20.0
    assert low <= 0.005


@pytest.mark.parametrize("name", CHARTS)
@pytest.mark.parametrize(("theme", "palette"), [("light", LIGHT), ("dark", DARK), ("page", None)])
def test_each_says_where_its_numbers_come_from_in_every_theme(attached, name, theme, palette, svg, subtitle):
    chart = CHARTS[name](attached, Look(theme=theme))
    assert subtitle(chart).startswith("attached (h:1)")
    assert "attached (h:1)" in chart.to_dict()["description"]
    text = static_svg(chart.to_dict(), "one") if palette is None else svg(chart)
    assert "NaN" not in text
    assert "role-axis" in text
    if palette is None:
        assert "var(--wb-" in text
    else:
        assert f'fill="{palette.ground}"' in text
        assert {"rates": palette.decode, "queue": palette.kv, "latency": palette.prefill}[name] in text


@pytest.mark.parametrize("name", CHARTS)
def test_a_run_without_readings_says_so_and_draws_no_axis(make_trace, name, svg):
    for kind in ("live", "attached"):
        text = svg(CHARTS[name](make_trace(kind=kind, output=5)))
        assert "No reading of /metrics in this trace" in text
        assert "role-axis" not in text


def test_a_server_that_tells_little_has_no_zeros(attached, with_rows, rows, svg, subtitle):
    bare = with_rows(attached, server=[{"t_s": 0.0, "running": 1}, {"t_s": 0.5, "running": 2}])
    bare = Trace(bare.tables, {**bare.meta, "engine": {"attached": {"histograms": None}}})
    assert "told no tokens" in svg(server_rate_chart(bare))
    assert "no histogram of latencies" in svg(server_latency_chart(bare))
    chart = server_queue_chart(bare)
    assert "not told: KV use, waiting, preemptions" in subtitle(chart)
    assert {row["series"] for row in rows(chart) if "series" in row} == {"running"}
    assert not any("kv" in row for row in rows(chart))


def test_an_hour_of_readings_is_thinned_and_keeps_its_spike(attached, with_rows, rows, subtitle):
    many = [
        {"t_s": n / 2, "output_tokens": 10 * n + (5000 if n > 4000 else 0), "running": 90 if n == 4000 else 3}
        for n in range(7200)
    ]
    trace = with_rows(attached, server=many)
    found = rows(server_rate_chart(trace))
    assert len(found) <= 2000
    assert max(row["rate"] for row in found if row["rate"] is not None) == 2 * 5010
    assert "of 14,399 rows drawn" in subtitle(server_rate_chart(trace))
    found = rows(server_queue_chart(trace))
    assert len(found) <= 2000
    assert max(row["requests"] for row in found if "requests" in row) == 90
