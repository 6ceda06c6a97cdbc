"""The trade chart draws what the table says, and says where it comes from."""

from __future__ import annotations

import pandas as pd
import pytest

from workbench.ui.charts.theme import Look
from workbench.ui.charts.trade import trade_chart
from workbench.ui.static import PAGE_LOOK, show

TABLE = pd.DataFrame(
    {
        "setting": ["budget 64", "budget 1,024", "chunk 128"],
        "chunk": [0, 0, 128],
        "largest chunk": [60, 1020, 128],
        "TTFT s": [4.0, 2.5, 3.0],
        "prefill tokens/s": [1900, 3300, 2600],
        "gap before P50 ms": [10.0, 11.0, 10.0],
        "gap during P99 ms": [40.0, 480.0, 90.0],
    }
).set_index("setting")


def rows_of(spec):
    return [row for rows in spec["datasets"].values() for row in rows]


def test_every_setting_is_in_every_plot():
    spec = trade_chart(TABLE, 200.0, "live CPU").to_dict()
    assert len(spec["vconcat"]) == 3
    rows = rows_of(spec)
    p99 = {row["setting"]: row["ms"] for row in rows if row.get("figure") == "P99 during the prefill"}
    assert p99 == {"budget 64": 40.0, "budget 1,024": 480.0, "chunk 128": 90.0}
    assert {row["ttft"] for row in rows if "ttft" in row} == {4.0, 2.5, 3.0}
    assert {row["ms"] for row in rows if "ms" in row and "setting" not in row} == {200.0}  # the SLO


def test_the_line_goes_through_the_budgets_only():
    spec = trade_chart(TABLE, 200.0, "live CPU").to_dict()
    for plot in spec["vconcat"]:
        line = next(layer for layer in plot["layer"] if layer["mark"]["type"] == "line")
        assert {row["setting"] for row in spec["datasets"][line["data"]["name"]]} == {"budget 64", "budget 1,024"}


def test_the_heading_names_origin_and_slo():
    said = " ".join(trade_chart(TABLE, 150.0, "live CPU").to_dict()["title"]["subtitle"])
    assert said.startswith("live CPU · 3 settings")
    assert "SLO 150 ms" in said


def test_it_draws_in_the_theme_of_the_page():
    svg = show(trade_chart(TABLE, 200.0, "live CPU", PAGE_LOOK)).svg
    assert "var(--wb-prefill" in svg


def test_a_table_that_lacks_a_column_is_an_error():
    with pytest.raises(KeyError, match="TTFT"):
        trade_chart(TABLE.drop(columns="TTFT s"), 200.0, "x", Look())
