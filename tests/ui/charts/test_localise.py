"""What a spec says by itself, in another language."""

import altair as alt
import pandas as pd
import pytest

from workbench.i18n import speaking
from workbench.ui.charts.localise import localise
from workbench.ui.charts.theme import FONT, FONT_ZH, LIGHT, config


@pytest.fixture
def spec():
    """Built anew: it is changed in place."""
    rows = pd.DataFrame({"t": [0.0, 1.0], "cause": ["prefill", "kv wait"], "who": ["chat-1", "policy"]})
    colours = alt.Scale(domain=["prefill", "chat-1"], range=["red", "blue"])
    first = (
        alt.Chart(rows)
        .mark_point()
        .encode(
            x="t:Q",
            color=alt.Color("cause:N", scale=colours, legend=alt.Legend(title=None)),
            shape=alt.Shape("cause:N", scale=alt.Scale(domain=["kv wait"]), legend=None),
            tooltip=[alt.Tooltip("cause:N"), alt.Tooltip("t:Q", title="ended, s"), alt.Tooltip("unheard:N")],
        )
    )
    return alt.layer(first, alt.Chart(rows).mark_rule().encode(x="t:Q")).to_dict()


def encoding(spec):
    return spec["layer"][0]["encoding"]


def test_english_stays_as_it_is(spec):
    before = str(spec)
    assert str(localise(spec)) == before


def test_tooltips_say_their_fields(spec):
    with speaking("zh"):
        localise(spec)
    assert [tip.get("title") for tip in encoding(spec)["tooltip"]] == ["原因", "结束于，s", "unheard"]


def test_a_legend_reads_kinds_and_leaves_names(spec):
    with speaking("zh"):
        localise(spec)
    assert encoding(spec)["color"]["legend"]["labelExpr"] == '{"prefill": "预填充"}[datum.label] || datum.label'
    assert encoding(spec)["color"]["scale"]["domain"] == ["prefill", "chat-1"]
    assert encoding(spec)["shape"]["legend"] is None


def test_data_are_left_alone(spec):
    rows = next(iter(spec["datasets"].values()))
    with speaking("zh"):
        localise(spec)
    assert [row["who"] for row in rows] == ["chat-1", "policy"]


def test_han_characters_have_fonts_of_their_own_behind_the_others():
    assert config(LIGHT)["font"] == FONT
    with speaking("zh"):
        assert config(LIGHT)["font"] == FONT_ZH
    assert FONT_ZH.startswith(FONT.removesuffix("sans-serif"))
    assert FONT_ZH.endswith("'WenQuanYi Micro Hei', sans-serif")
