from __future__ import annotations

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench.metrics import gaps
from workbench.metrics.gaps import Gaps
from workbench.trace import TABLES, Trace, table_of

COLUMNS = ["request", "class", "index", "n", "at_s", "gap_ms", "engine_gap_ms", "lag_ms"]


def test_gaps_by_hand(chat_and_long):
    found = gaps(chat_and_long)
    assert list(found.columns) == COLUMNS
    one = found[found["request"] == "chat-1"]
    assert one["class"].tolist() == ["chat"] * 5
    assert one["index"].tolist() == [1, 2, 3, 4, 5]
    assert one["n"].tolist() == [1, 1, 1, 1, 2]  # two tokens that arrive together end one gap
    assert one["gap_ms"].tolist() == pytest.approx([10, 10, 500, 250, 20])
    assert one["engine_gap_ms"].tolist() == pytest.approx([10, 10, 500, 250, 20])
    assert one["at_s"].tolist() == pytest.approx([1.032, 1.042, 1.542, 1.792, 1.812])
    assert found["lag_ms"].to_numpy() == pytest.approx(np.zeros(len(found)), abs=1e-9)
    assert found.groupby("request", observed=True).size().to_dict() == {"chat-0": 7, "chat-1": 5, "doc": 1}


def test_lag_is_what_the_engine_did_not_take(trace, build):
    stream, decodes, _ = build
    steps = [{"step": 1, "end_s": 1.0}, {"step": 2, "end_s": 1.03}]
    found = gaps(trace(tokens=stream("a", 1.001, 1.101), batch=decodes("a", 1, 2), steps=steps))
    assert found["gap_ms"].tolist() == pytest.approx([100])
    assert found["engine_gap_ms"].tolist() == pytest.approx([30])
    assert found["lag_ms"].tolist() == pytest.approx([70])


def test_without_step_records_the_engine_gap_is_not_known(trace, build):
    stream, _, _ = build
    found = gaps(trace(tokens=stream("a", 1.0, 1.5)))
    assert found["gap_ms"].tolist() == [500]
    assert found["engine_gap_ms"].isna().all()
    assert found["lag_ms"].isna().all()
    assert found["class"].isna().all()  # no row of the request yet


def test_arrivals_without_a_time_or_a_request_are_left_out(trace, build):
    stream, _, _ = build
    tokens = [*stream("a", 1.0, 2.0), {"request": "a", "index": 9, "n": 1}, *stream(None, 1.2, 1.4)]
    assert gaps(trace(tokens=tokens))["gap_ms"].tolist() == [1000]


@pytest.mark.parametrize("tokens", [[], [("a", 1.0)], [("a", 1.0), ("b", 2.0)], [(None, 1.0), (None, 2.0)]])
def test_no_gap(trace, build, tokens):
    stream, _, _ = build
    found = gaps(trace(tokens=[row for token in tokens for row in stream(*token)]))
    assert not len(found)
    assert list(found.columns) == COLUMNS
    assert [str(found[name].dtype) for name in ("index", "n", "gap_ms", "lag_ms")] == ["int64"] * 2 + ["float64"] * 2


def test_more_streams_than_16_bits_count():
    streams = 70_000
    request = pa.array(np.tile(np.arange(streams), 2).astype(str))
    time = np.concatenate((np.arange(streams) / 1e6, 10 + np.arange(streams) / 1e6))
    ones = pa.array(np.ones(2 * streams), pa.int32())
    null = pa.nulls(2 * streams)
    tokens = pa.table([request, ones, ones, time, null.cast(pa.float64()), null.cast(pa.int64())], TABLES["tokens"])
    found = gaps(Trace({name: schema.empty_table() for name, schema in TABLES.items()} | {"tokens": tokens}))
    assert len(found) == streams
    assert found["gap_ms"].to_numpy() == pytest.approx(np.full(streams, 10_000))


arrivals = st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 100), st.integers(1, 3)), max_size=40)


@settings(deadline=None, max_examples=200)
@given(arrivals, st.randoms())
def test_gaps_of_a_stream_add_up_and_the_order_of_rows_does_not_matter(found, random):
    streams = {}
    for name, at, n in found:
        streams.setdefault(name, []).append((at, n))
    rows = []
    for name, those in streams.items():
        index = 0
        for at, n in sorted(those):
            rows.append({"request": name, "index": index, "n": n, "client_s": at})
            index += n
    random.shuffle(rows)
    tables = {name: schema.empty_table() for name, schema in TABLES.items()} | {"tokens": table_of("tokens", rows)}
    frame = gaps(Trace(tables))
    expected = [b - a for those in streams.values() for a, b in pairwise(sorted(at for at, _ in those))]
    assert sorted(frame["gap_ms"]) == pytest.approx(sorted(1e3 * gap for gap in expected))
    for name, those in streams.items():
        mine = frame[frame["request"] == name]
        times = sorted(at for at, _ in those)
        assert mine["gap_ms"].sum() / 1e3 == pytest.approx(times[-1] - times[0])
        assert len(mine) == len(those) - 1
    assert int(Gaps.of(Trace(tables)).tokens.sum()) == sum(n for _, _, n in found)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(arrivals, st.floats(0.1, 100))
def test_a_percentile_of_each_stream_is_numpys(found, percentile):
    rows = [{"request": name, "index": i, "n": n, "client_s": at} for i, (name, at, n) in enumerate(found)]
    tables = {name: schema.empty_table() for name, schema in TABLES.items()} | {"tokens": table_of("tokens", rows)}
    all_gaps = Gaps.of(Trace(tables))
    for name, worst in zip(all_gaps.names, all_gaps.worst_ms(percentile), strict=True):
        times = np.sort([at for stream, at, _ in found if stream == name])
        if len(times) < 2:
            assert np.isnan(worst)
        else:
            assert worst == pytest.approx(np.percentile(np.diff(times) * 1e3, percentile), abs=1e-6)
