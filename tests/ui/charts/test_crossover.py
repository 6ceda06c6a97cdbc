"""Recompute or swap: both curves, where they meet, and where each figure comes from."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from workbench.ui.charts import crossover_chart

TOKENS = [2.0**n for n in range(7, 14)]


def table(recompute, swap, **attrs):
    frame = pd.DataFrame({"tokens": TOKENS, "recompute_s": recompute, "swap_s": swap})
    frame = frame.assign(recompute_source="live CPU, measured over 9 prefill steps", swap_source="estimate: published")
    frame.attrs = attrs
    return frame


@pytest.fixture
def crossing():
    """Recompute of 1 ms a token against a swap of 1 s: equal at 1,000 tokens."""
    return table([n / 1000 for n in TOKENS], [1.0] * 7, measured_to=2048)


def test_the_crossing_is_marked_with_its_length(crossing, rows, svg):
    chart = crossover_chart(crossing)
    (mark,) = [row for row in rows(chart) if "label" in row]
    assert mark["tokens"] == pytest.approx(1000)
    assert ">equal at 1,000 tokens</text>" in svg(chart)


def test_both_curves_are_there_and_what_was_not_measured_is_hollow(crossing, rows, subtitle):
    drawn = pd.DataFrame([row for row in rows(crossover_chart(crossing)) if "way" in row])
    recompute = drawn[drawn["way"] == "recompute"].set_index("tokens")
    assert recompute["seconds"].to_dict() == {n: n / 1000 for n in TOKENS}
    assert recompute.index[recompute["beyond"]].tolist() == [4096.0, 8192.0]
    assert not drawn.loc[drawn["way"] == "swap", "beyond"].any()
    said = subtitle(crossover_chart(crossing)).splitlines()
    assert said[1:] == [
        "recompute: live CPU, measured over 9 prefill steps; hollow: extrapolated beyond 2,048 tokens",
        "swap: estimate: published",
    ]


def test_curves_that_never_meet_have_no_mark(rows, subtitle):
    chart = crossover_chart(table([1.0] * 7, [0.1] * 7, summary="swap is cheaper at every length"))
    assert not [row for row in rows(chart) if "label" in row]
    assert subtitle(chart).startswith("swap is cheaper at every length")


def test_what_is_not_known_is_named_and_not_drawn(rows, subtitle, svg):
    frame = table([n / 1000 for n in TOKENS], [np.nan] * 7).assign(swap_source="not known: no model")
    chart = crossover_chart(frame)
    assert {row["way"] for row in rows(chart) if "way" in row} == {"recompute"}
    assert "swap: not known: no model" in subtitle(chart)
    nothing = table([np.nan] * 7, [np.nan] * 7)
    assert "No cost of a recompute or a swap" in svg(crossover_chart(nothing))


def test_from_a_run(crowded, subtitle):
    assert subtitle(crossover_chart(crowded)).startswith("live CPU · ")
