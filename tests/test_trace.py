from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.engine_stamps import join_engine_stamps
from workbench.trace import TABLES, Trace, table_of


def joined(tokens, batch, steps):
    return join_engine_stamps(table_of("tokens", tokens), table_of("batch", batch), table_of("steps", steps))


def token(request, index, client_s, n=1, **more):
    return {"request": request, "index": index, "n": n, "client_s": client_s, **more}


def part(step, request, emitted, **more):
    return {"step": step, "request": request, "emitted": emitted, **more}


STEPS = [{"step": s, "end_s": s / 10} for s in range(1, 7)]


def test_table_of_fills_left_out_columns_with_null_and_refuses_unknown_ones():
    table = table_of("steps", [{"step": 1, "preempted": ["a", "b"]}])
    assert table.schema.equals(TABLES["steps"])
    assert table.to_pylist()[0]["preempted"] == ["a", "b"]
    assert table["end_s"].null_count == 1
    with pytest.raises(KeyError, match="colour"):
        table_of("steps", [{"step": 1}, {"colour": "red"}])
    assert table_of("memory", []).schema.equals(TABLES["memory"])


def test_trace_gives_data_frames():
    trace = Trace.empty({"label": "nothing"})
    assert trace.meta == {"label": "nothing"}
    for name, schema in TABLES.items():
        assert list(getattr(trace, name).columns) == schema.names


def test_join_gives_each_arrival_the_step_of_its_last_token():
    # a: prompt in steps 1 and 2, the first token in 2, then one a step; b: two tokens in step 3, one in 5
    batch = [part(1, "a", 0), part(2, "a", 1), part(3, "a", 1), part(4, "a", 1), part(3, "b", 2), part(5, "b", 1)]
    tokens = [
        token("a", 0, 0.21),
        token("b", 0, 0.31, n=1),
        token("a", 1, 0.42, n=2),  # tokens 1 and 2 came together: made by steps 3 and 4
        token("b", 1, 0.52, n=2),
    ]
    out = joined(tokens, batch, STEPS)
    assert out["step"].to_pylist() == [2, 3, 4, 5]
    assert out["engine_s"].to_pylist() == [0.2, 0.3, 0.4, 0.5]
    assert out.schema.equals(TABLES["tokens"])


def test_join_does_not_depend_on_the_order_of_rows():
    batch = [part(4, "a", 1), part(2, "a", 1), part(3, "a", 1)]
    out = joined([token("a", 2, 0.5), token("a", 0, 0.3), token("a", 1, 0.4)], batch, STEPS[::-1])
    assert out["step"].to_pylist() == [4, 2, 3]


def test_join_leaves_null_what_it_cannot_know():
    batch = [part(2, "a", 1), part(3, "a", 1), part(9, "a", 1), part(2, None, 1)]
    tokens = [token("a", 1, 0.4), token("a", 2, 2.0), token("a", 3, 2.1), token("c", 0, 1.0), token(None, 0, 1.0)]
    out = joined(tokens, batch, STEPS)
    assert out["step"].to_pylist() == [3, 9, None, None, None]  # step 9 is known, but not when it ended
    assert out["engine_s"].to_pylist() == [0.3, None, None, None, None]


def test_join_rather_says_nothing_than_a_step_that_ended_after_the_arrival():
    # the record of step 3 was lost, so the sum runs one late: tokens 1 and 2 seem to be of steps 4 and 5
    batch = [part(2, "a", 1), part(4, "a", 1), part(5, "a", 1)]
    out = joined([token("a", i, (i + 2) / 10 + 0.001) for i in range(4)], batch, STEPS)
    assert out["step"].to_pylist() == [2, None, None, None]
    assert out["engine_s"].to_pylist() == [0.2, None, None, None]


def test_join_keeps_stamps_that_are_there():
    batch = [part(2, "a", 1), part(3, "a", 1)]
    out = joined([token("a", 0, 9.0, engine_s=8.5, step=7), token("a", 1, 9.0)], batch, STEPS)
    assert out["engine_s"].to_pylist() == [8.5, 0.3]
    assert out["step"].to_pylist() == [7, 3]


@pytest.mark.parametrize("empty", ["tokens", "batch", "steps"])
def test_join_of_nothing(empty):
    full = {"tokens": [token("a", 0, 1.0)], "batch": [part(1, "a", 1)], "steps": STEPS} | {empty: []}
    out = joined(**full)
    assert out["step"].to_pylist() == [None] * len(full["tokens"])
    assert out.schema.equals(TABLES["tokens"])


def test_join_takes_columns_in_several_pieces():
    tokens = [token("a", 0, 0.3), token("b", 0, 0.3)]
    pieces = pa.concat_tables([table_of("tokens", [row]) for row in tokens])
    batch = pa.concat_tables([table_of("batch", [part(2, name, 1)]) for name in "ab"])
    assert join_engine_stamps(pieces, batch, table_of("steps", STEPS))["step"].to_pylist() == [2, 2]


@st.composite
def runs(draw):
    """Streams whose tokens are made by known steps and arrive in groups."""
    batch, tokens, truth = [], [], []
    for name in draw(st.lists(st.sampled_from("abcde"), unique=True, max_size=4)):
        steps = sorted(draw(st.sets(st.integers(0, 30), max_size=10)))
        made = [(step, draw(st.integers(0, 3))) for step in steps]
        batch += [part(step, name, emitted) for step, emitted in made]
        of = [step for step, emitted in made for _ in range(emitted)]
        index = 0
        while index < len(of):
            n = draw(st.integers(1, len(of) - index))
            last = of[index + n - 1]
            tokens.append(token(name, index, last + draw(st.floats(0, 2)), n))
            truth.append(last)
            index += n
    order = draw(st.permutations(range(len(tokens))))
    batch = draw(st.permutations(batch))
    return [tokens[i] for i in order], batch, [truth[i] for i in order]


@settings(max_examples=200, deadline=None)
@given(runs())
def test_join_finds_the_step_that_made_each_token(run):
    tokens, batch, truth = run
    out = joined(tokens, batch, [{"step": s, "end_s": float(s)} for s in range(31)])
    assert out["step"].to_pylist() == truth
    assert out["engine_s"].to_pylist() == truth
    kept = ["request", "index", "n", "client_s"]
    assert out.select(kept).equals(table_of("tokens", tokens).select(kept))  # no token is lost or made up


@settings(max_examples=100, deadline=None)
@given(runs(), st.data())
def test_lost_records_never_give_a_stamp_after_the_arrival(run, data):
    tokens, batch, _ = run
    kept = [row for row in batch if data.draw(st.booleans())]
    out = joined(tokens, kept, [{"step": s, "end_s": float(s)} for s in range(31)])
    engine = np.asarray(out["engine_s"].to_numpy(), dtype=float)
    assert not (engine > out["client_s"].to_numpy() + 1e-3).any()
    assert out.num_rows == len(tokens)
