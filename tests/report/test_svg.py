from __future__ import annotations

import json
import re
from itertools import pairwise

import altair as alt
import pandas as pd
import pytest

from workbench.report.svg import static_svg


def chart(**mark):
    rows = pd.DataFrame({"x": range(50), "y": [1 / 3 + n for n in range(50)], "s": ["<b>&1.23456"] * 50})
    points = alt.Chart(rows, title="v1.23456 </svg>").mark_point(aria=False, clip=True, **mark)
    return points.encode(x="x:Q", y="y:Q", shape=alt.Shape("s:N")).to_dict()


def places(text):
    """Where the 50 points lie."""
    found = re.findall(r'<use href="#p-s0" x="([^"]*)" y="([^"]*)"/>', text)
    return [(float(x), float(y)) for x, y in found]


def test_equal_marks_share_one_symbol_in_their_places():
    text = static_svg(chart(opacity=1), "p")
    assert len(places(text)) == 50
    assert text.count('<path id="p-s0"') == 1
    xs = [x for x, _ in places(text)]
    steps = {round(b - a, 1) for a, b in pairwise(xs)}
    assert len(steps) == 1  # evenly spaced, as the data are
    (step,) = steps
    assert xs[0] == pytest.approx(0, abs=0.01)
    assert xs[-1] == pytest.approx(49 * step, rel=0.02)


def test_faded_marks_stay_single_since_a_group_fades_as_one():
    text = static_svg(chart(opacity=0.5), "p")
    assert places(text) == []
    assert text.count(' opacity="0.5"') == 51  # and the one in the legend


def test_ids_are_unique_to_the_chart():
    text = static_svg(chart(opacity=1), "p")
    assert re.findall(r'id="(?!p-)', text) == []
    assert set(re.findall(r"url\(#([^)]*)\)", text)) <= set(re.findall(r'id="([^"]*)"', text))


def test_text_is_escaped_and_not_rounded():
    text = static_svg(chart(opacity=1), "p")
    assert "v1.23456 &lt;/svg&gt;" in text
    assert "&lt;b&gt;&amp;1.23456" in text
    assert not re.search(r'\b(x|y|d|transform)="[^"]*\.\d{3}', text)


def test_a_name_that_xml_cannot_hold_is_drawn_and_ends_no_process():
    bad = "a\x1b[31m\x00\uffff\u202eb"
    rows = pd.DataFrame({"x": [1, 2], "s": [f"{bad}{n}" for n in (1, 2)]})
    spec = alt.Chart(rows, title=bad).mark_point().encode(x="x:Q", shape=alt.Shape("s:N", title=bad)).to_dict()
    text = static_svg(spec, "p")
    assert text.count("a?[31m???b") >= 4  # title, legend and its two entries
    assert not re.search("[\x00-\x08\x0b-\x1f\uffff\u202e]", text)


def test_neither_does_one_that_an_expression_of_the_chart_holds():
    names = json.dumps({"1": "a\x1b\x00b", "2": "\U0001f600"})
    axis = alt.Axis(labelExpr=f"({names})[datum.value]", values=[1, 2])
    spec = alt.Chart(pd.DataFrame({"x": [1, 2]})).mark_point().encode(x=alt.X("x:Q", axis=axis)).to_dict()
    text = static_svg(spec, "p")
    assert "a??b" in text
    assert "\U0001f600" in text
