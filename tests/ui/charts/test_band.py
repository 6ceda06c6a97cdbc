"""Bands beside claims and floors, and the largest step: every mark where its number is."""

import numpy as np
import pandas as pd
import pytest

from workbench.ui.charts import LIGHT, Look, band_chart, largest_step_chart

ORIGIN = "simulated · roofline, uncalibrated"


@pytest.fixture
def table():
    rows = [
        ("whole", "TTFT, s", 0.42, 1.84, 3.7, 3.4, 5.1),
        ("whole", "gap, ms", 780.0, 5.2, 3800.0, 3400.0, 5200.0),
        ("ours", "TTFT, s", np.nan, 1.84, 4.7, 4.0, 7.0),
        ("ours", "gap, ms", np.nan, 5.2, 50.0, 50.0, 51.0),
    ]
    names = ["policy", "figure", "article", "floor", "simulated", "low", "high"]
    return pd.DataFrame(rows, columns=names).set_index(["policy", "figure"])


def test_each_figure_has_a_plot_and_says_where_it_comes_from(table, svg, subtitle):
    chart = band_chart(table, ["TTFT, s", "gap, ms"], ORIGIN)
    text = svg(chart)
    assert subtitle(chart).startswith(ORIGIN)
    assert ORIGIN in chart.to_dict()["description"]
    assert ">TTFT, s (log)<" in text
    assert ">gap, ms (log)<" in text
    assert text.count(">ours<") == 2
    with pytest.raises(KeyError, match="MFU"):
        band_chart(table, ["MFU"], ORIGIN)


def test_a_claim_below_the_floor_is_filled(table, svg):
    impossible = svg(band_chart(table, ["TTFT, s"], ORIGIN, Look()))
    possible = svg(band_chart(table, ["gap, ms"], ORIGIN, Look()))
    assert f'fill="{LIGHT.alert}"' in impossible
    assert f'fill="{LIGHT.alert}"' not in possible
    assert f'stroke="{LIGHT.alert}"' in possible


def test_the_largest_step_has_a_line_an_engine_and_the_prompt(svg, subtitle, rows):
    index = pd.MultiIndex.from_product([[0.92, 0.95], [512, 2048]], names=["memory share", "budget"])
    table = pd.DataFrame({"largest step": [73_316, 74_852, 46_015, 47_551]}, index=index)
    chart = largest_step_chart(table, 65_536, ORIGIN)
    text = svg(chart)
    assert subtitle(chart).startswith(ORIGIN)
    assert "takes 92% of the memory" in text
    assert "takes 95% of the memory" in text
    assert "a prompt of 65,536 tokens is larger in 2 of 4 cases" in chart.to_dict()["description"]
    assert {row["tokens"] for row in rows(chart) if "engine" in row} == {73_316, 74_852, 46_015, 47_551}
