"""A thinned chart loses no spike."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from workbench.ui.charts import decimate


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(-5, 5), st.sampled_from("ab")), min_size=1, max_size=300),
    st.integers(4, 50),
)
def test_decimate_keeps_the_maximum_of_every_bucket(data, limit):
    frame = pd.DataFrame(data, columns=["t", "v", "g"])
    kept = decimate(frame, "t", ["v"], limit, by="g")
    assert len(kept) <= limit
    assert set(kept.index) <= set(frame.index)
    for name, part in frame.groupby("g"):
        assert kept.loc[kept["g"] == name, "v"].max() == part["v"].max()
    if len(frame) > limit:
        buckets = limit // frame["g"].nunique()
        low, high = frame["t"].min(), frame["t"].max()
        width = (high - low) / buckets or 1.0
        place = np.minimum((frame["t"] - low) // width, buckets - 1)
        expected = frame.groupby([frame["g"], place])["v"].max()
        found = kept.groupby([kept["g"], place[kept.index]])["v"].max()
        pd.testing.assert_series_equal(found, expected)


def test_decimate_survives_nan_and_one_moment():
    frame = pd.DataFrame({"t": [1.0] * 50, "v": [np.nan] * 49 + [3.0]})
    assert decimate(frame, "t", ["v"], 5)["v"].tolist() == [3.0]
