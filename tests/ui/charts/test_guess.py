"""The chart of a guess and what was measured."""

import math

import pandas as pd

from workbench.ui.charts import guess_chart

ROWS = pd.DataFrame(
    {
        "place": ["0 s", "1 s", "2 s"],
        "begin": [0.0, 1.0, 2.0],
        "end": [1.0, 2.0, 3.0],
        "guess": [100.0, 100.0, math.nan],
        "measured": [math.nan, 9000.0, 20.0],
    }
)
WORDS = {"label": "longest gap", "unit": "ms"}


def test_two_step_lines_with_both_ends_of_each_column(rows, svg):
    chart = guess_chart(ROWS, "live CPU", span=(10, 1000), log=True, **WORDS)
    lines = [(row["series"], row["t"], row["value"]) for row in rows(chart) if "series" in row]
    expected = [("expected", t, 100.0) for t in (0.0, 1.0, 1.0, 2.0)]
    measured = [("measured", 1.0, 9000.0), ("measured", 2.0, 9000.0), ("measured", 2.0, 20.0), ("measured", 3.0, 20.0)]
    assert lines == expected + measured
    text = svg(chart)
    assert "live CPU" in text
    assert "Expected and measured: longest gap" in text


def test_both_lines_fit_the_axis(find):
    spec = guess_chart(ROWS, "live CPU", span=(10, 1000), log=True, **WORDS).to_dict()
    assert [10, 9000.0] in [list(one) for one in find(spec, "domain") if isinstance(one, list)]


def test_columns_with_names_are_marks_in_their_order(find):
    spec = guess_chart(ROWS, "simulated", named=True, span=(0, 1), **WORDS).to_dict()
    assert ["0 s", "1 s", "2 s"] in list(find(spec, "sort"))
    assert spec["mark"]["type"] == "point"


def test_nothing_measured_is_still_a_chart(svg):
    assert "expected" in svg(
        guess_chart(ROWS.assign(measured=math.nan), "live CPU", log=True, span=(10, 1000), **WORDS)
    )
