from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from workbench.metrics import phases, preemptions

COLUMNS = [
    "request", "class", "at_s", "step", "lost_tokens", "recomputed_tokens", "away_s", "recovered_s",
]  # fmt: skip


def step(number, start, end, *preempted, **more):
    """A step that was planned 10 ms before it began."""
    return {"step": number, "scheduled_s": start - 0.01, "start_s": start, "end_s": end, "preempted": preempted, **more}


def part(number, context, tokens, emitted=0, request="a", prefill=None):
    prefill = emitted == 0 or tokens > 1 if prefill is None else prefill
    row = {"step": number, "request": request, "context": context, "tokens": tokens}
    return row | {"prefill": prefill, "emitted": emitted}


def row_of(frame, i=0):
    return {name: None if pd.isna(value) else value for name, value in frame.iloc[i].items()}


@pytest.fixture
def decoding(trace):
    """A prompt of 100 tokens, two tokens of output; preempted by step 4, away for step 4, back with 60 and 42."""
    steps = [step(i, float(i), i + 0.9, *(["a"] if i == 4 else [])) for i in range(1, 8)]
    batch = [
        part(1, 0, 60),
        part(2, 60, 40, 1),
        part(3, 100, 1, 1),
        part(4, 0, 10, request="b"),
        part(5, 0, 60),
        part(6, 60, 42, 1),  # 41 of what it had, and the token that it had not computed yet
        part(7, 102, 1, 1),
    ]
    requests = [{"request": "a", "class": "chat", "planned_s": 0.4, "sent_s": 0.5, "done_s": 8.5, "status": "ok"}]
    return trace(steps=steps, batch=batch, requests=requests)


def test_a_decode_is_preempted_and_computed_again(decoding):
    found = preemptions(decoding)
    assert list(found.columns) == COLUMNS
    assert row_of(found) == {
        "request": "a",
        "class": "chat",
        "at_s": pytest.approx(3.99),
        "step": 4,
        "lost_tokens": 101,
        "recomputed_tokens": 101,
        "away_s": pytest.approx(1.0),  # from the planning of step 4 to that of step 5
        "recovered_s": pytest.approx(6.9 - 3.99),
    }


def test_its_history(decoding):
    found = phases(decoding)
    assert list(found.columns) == ["request", "class", "phase", "begin_s", "end_s", "tokens"]
    told = found[found["request"] == "a"].drop(columns=["request", "class"]).values.tolist()
    middle = 6 + 0.9 * 41 / 42  # step 6 computes 41 old tokens and one new
    assert told == [
        ["queued", 0.5, 1.0, 0],
        ["prefill", 1.0, pytest.approx(2.9), 100],
        ["decode", 3.0, pytest.approx(3.9), 1],
        ["preempted", pytest.approx(3.99), 5.0, 0],
        ["recompute", 5.0, pytest.approx(middle), 101],
        ["decode", pytest.approx(middle), pytest.approx(7.9), 2],
    ]
    assert found[found["request"] == "b"].values.tolist() == [["b", None, "prefill", 4.0, pytest.approx(4.9), 10]]


def test_preempted_during_prefill(trace):
    steps = [step(i, float(i), i + 0.9, *(["a"] if i == 2 else [])) for i in range(1, 6)]
    batch = [part(1, 0, 50), part(3, 0, 80), part(4, 80, 20, 1), part(5, 100, 1, 1)]
    run = trace(steps=steps, batch=batch)
    found = row_of(preemptions(run))
    assert (found["step"], found["lost_tokens"], found["recomputed_tokens"]) == (2, 50, 50)
    assert found["recovered_s"] == pytest.approx(3.9 - 1.99)
    told = phases(run).drop(columns=["request", "class"]).values.tolist()
    middle = 3 + 0.9 * 50 / 80
    assert told == [
        ["prefill", 1.0, pytest.approx(1.9), 50],
        ["preempted", pytest.approx(1.99), 3.0, 0],
        ["recompute", 3.0, pytest.approx(middle), 50],
        ["prefill", pytest.approx(middle), pytest.approx(4.9), 50],
        ["decode", 5.0, pytest.approx(5.9), 1],
    ]


def test_preempted_twice_counts_every_token_that_was_computed_twice(trace):
    steps = [step(i, float(i), i + 0.9, *(["a"] if i in (3, 5) else [])) for i in range(1, 9)]
    batch = [
        part(1, 0, 100, 1),
        part(2, 100, 1, 1),
        part(4, 0, 40),  # 40 of 101, then it goes again
        part(6, 0, 80),
        part(7, 80, 22, 1),
        part(8, 102, 1, 1),
    ]
    run = trace(steps=steps, batch=batch)
    found = preemptions(run)
    assert found["lost_tokens"].tolist() == [101, 40]
    assert found["recomputed_tokens"].tolist() == [40, 101]
    assert found["away_s"].tolist() == pytest.approx([1.0, 1.0])
    assert found["recovered_s"].tolist() == pytest.approx([7.9 - 2.99, 6.9 - 4.99])
    computed = sum(row["tokens"] for row in batch)
    assert computed - found["recomputed_tokens"].sum() == 103  # positions 0 to 102, each once
    told = phases(run)
    assert told["phase"].tolist() == [
        "prefill", "decode", "preempted", "recompute", "preempted", "recompute", "decode",
    ]  # fmt: skip
    assert told.loc[told["phase"] == "recompute", "tokens"].tolist() == [40, 101]


def test_aborted_while_preempted(trace):
    steps = [step(i, float(i), i + 0.9, *(["a"] if i == 2 else [])) for i in range(1, 6)]
    batch = [part(1, 0, 50, 1), *(part(i, 40 + i, 1, 1, request="b") for i in range(1, 6))]
    requests = [{"request": "a", "planned_s": 0.5, "sent_s": 0.5, "done_s": 4.2, "status": "cancelled"}]
    run = trace(steps=steps, batch=batch, requests=requests)
    found = row_of(preemptions(run))
    assert (found["lost_tokens"], found["recomputed_tokens"]) == (50, 0)
    assert (found["away_s"], found["recovered_s"]) == (None, None)
    told = phases(run)
    assert told[told["request"] == "a"].iloc[-1][["phase", "begin_s", "end_s"]].tolist() == [
        "preempted",
        pytest.approx(1.99),
        4.2,
    ]
    still = trace(steps=steps, batch=batch, requests=[requests[0] | {"done_s": None, "status": None}])
    assert phases(still).query("request == 'a'")["end_s"].iloc[-1] == pytest.approx(5.9)  # as far as is recorded


def test_what_comes_back_from_the_prefix_cache_is_not_computed_again(trace):
    steps = [step(i, float(i), i + 0.9, *(["a"] if i == 2 else [])) for i in range(1, 5)]
    some = preemptions(trace(steps=steps, batch=[part(1, 0, 100, 1), part(3, 64, 37, 1), part(4, 101, 1, 1)]))
    assert some["recomputed_tokens"].tolist() == [36]  # 64 to 99; the 101st is new
    assert some["recovered_s"].tolist() == pytest.approx([3.9 - 1.99])
    every = preemptions(trace(steps=steps, batch=[part(1, 0, 100, 1), part(3, 100, 1, 1), part(4, 101, 1, 1)]))
    assert every["recomputed_tokens"].tolist() == [0]
    assert every["recovered_s"].tolist() == pytest.approx([3.0 - 1.99])  # as soon as it was back


def test_a_step_in_flight_is_finished_before_the_request_is_away(trace):
    # two steps in flight: 3 is planned at 2.05 and preempts a while 2 still computes a's next token
    steps = [step(1, 1.0, 1.9), step(2, 1.5, 2.9), step(3, 2.06, 3.9, "a"), step(4, 3.2, 4.9)]
    batch = [part(1, 0, 100, 1), part(2, 100, 1, 1), part(3, 0, 5, 1, request="b"), part(4, 0, 102, 1)]
    run = trace(steps=steps, batch=batch)
    found = row_of(preemptions(run))
    assert found["at_s"] == pytest.approx(2.05)
    assert found["lost_tokens"] == 101
    told = phases(run).query("request == 'a' and phase == 'preempted'").iloc[0]
    assert (told["begin_s"], told["end_s"]) == (pytest.approx(2.9), pytest.approx(3.9))


def test_a_preemption_whose_record_was_lost_shows_in_the_context(trace):
    steps = [step(i, float(i), i + 0.9) for i in (1, 2, 4, 5)]  # step 3 is lost, and with it who was preempted
    run = trace(steps=steps, batch=[part(1, 0, 100, 1), part(2, 100, 1, 1), part(4, 0, 102, 1), part(5, 102, 1, 1)])
    found = row_of(preemptions(run))
    assert (found["at_s"], found["step"], found["away_s"], found["recovered_s"]) == (None,) * 4
    assert (found["lost_tokens"], found["recomputed_tokens"]) == (101, 101)
    away = phases(run).query("phase == 'preempted'").iloc[0]
    assert (away["begin_s"], away["end_s"]) == (pytest.approx(2.9), 4.0)


def test_what_is_not_known_of_a_lost_step_is_missing(trace):
    steps = [step(5, 5.0, 5.9, "a"), step(6, 6.0, 6.9), step(7, 7.0, 7.9, "a"), step(8, 8.0, 8.9)]
    found = preemptions(trace(steps=steps, batch=[part(8, 0, 50, prefill=True)]))  # nothing is known from before
    assert found["lost_tokens"].isna().tolist() == [True, True]
    assert found["recomputed_tokens"].isna().tolist() == [False, True]  # none before the second one, some after
    assert found["recovered_s"].isna().all()


def test_tokens_that_speculation_loses_are_no_preemption(trace):
    # five tokens a step, of which the model takes two: the context falls behind what was computed
    steps = [step(i, float(i), i + 0.9) for i in range(1, 5)]
    batch = [part(1, 0, 100, 1), *(part(i, 96 + 2 * i, 5, 2, prefill=False) for i in (2, 3, 4))]
    run = trace(steps=steps, batch=batch)
    assert not len(preemptions(run))
    assert phases(run)["phase"].tolist() == ["prefill", "decode"]


def test_several_requests_in_any_order_of_rows(decoding, trace):
    rows = {name: table.to_pylist() for name, table in decoding.tables.items()}
    twin = [row | {"request": "z"} for row in rows["batch"] if row["request"] == "a"]
    for row in rows["steps"]:
        row["preempted"] = [*row["preempted"], *("z" for _ in row["preempted"])]
    rows["batch"] += twin
    shuffled = {name: [some[i] for i in np.random.default_rng(3).permutation(len(some))] for name, some in rows.items()}
    found = preemptions(trace(**shuffled)).sort_values("request")
    assert found["request"].tolist() == ["a", "z"]
    assert found["recomputed_tokens"].tolist() == [101, 101]
    history = phases(trace(**shuffled))
    alike = [history[history["request"] == name].drop(columns=["request", "class"]).values.tolist() for name in "az"]
    assert alike[0][1:] == alike[1]  # but for the queue: z has no row of its own


def test_requests_that_were_never_scheduled_wait_until_they_end(trace):
    requests = [
        {"request": "gone", "planned_s": 1.0, "sent_s": 1.0, "done_s": 3.0, "status": "error"},
        {"request": "waits", "planned_s": 2.0, "sent_s": 2.0},
        {"request": "later", "planned_s": 9.0, "status": None},  # not sent yet
    ]
    found = phases(trace(requests=requests, steps=[step(1, 4.0, 5.0)], batch=[part(1, 0, 5, request="x")]))
    assert found.query("phase == 'queued'")[["request", "begin_s", "end_s"]].values.tolist() == [
        ["gone", 1.0, 3.0],
        ["waits", 2.0, 5.0],
    ]


def test_nothing_to_tell(trace):
    for frame in (preemptions(trace()), phases(trace())):
        assert not len(frame)
    requests = [{"request": "a", "planned_s": 1.0, "sent_s": 1.0}]
    assert not len(phases(trace(requests=requests)))  # without step records nobody knows what it waited for
