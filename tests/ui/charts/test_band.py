"""Bands beside claims and floors, and the largest step: every mark where its number is."""

import numpy as np
import pandas as pd
import pytest

from workbench.i18n import speaking
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


def test_both_are_told_in_chinese(table, svg, subtitle):
    index = pd.MultiIndex.from_product([[0.92], [512, 2048]], names=["memory share", "budget"])
    steps = pd.DataFrame({"largest step": [73_316, 46_015]}, index=index)
    with speaking("zh"):
        band, largest = band_chart(table, ["TTFT, s"], ORIGIN), largest_step_chart(steps, 65_536, ORIGIN)
    assert band.to_dict()["title"]["text"] == "文章说法、模拟结果与下限"
    assert ">TTFT，s（对数）<" in svg(band)
    assert "菱形：文章的说法" in "".join(band.to_dict()["title"]["subtitle"])
    assert "占用 92% 的显存" in svg(largest)
    assert "2 种情况中有 1 种容不下 65,536 个 token 的提示词" in largest.to_dict()["description"]
