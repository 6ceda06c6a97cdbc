"""Columns of step records, and rows of columns."""

import pyarrow as pa
import pytest

from workbench.engine.probe.wire import Fault, KnobChange, KnobReply, Part, Step
from workbench.simulate.job import Ask
from workbench.simulate.rows import Recorder, as_rows, unpacked
from workbench.trace import TABLES


def step(number, end_s, *parts, preempted=(), **more):
    return Step(number, end_s - 0.1, 0.0, 3, 2, 1, 0.5, list(preempted), list(parts), end_s=end_s, **more)


def tables(recorder):
    return {name: unpacked(data) for name, data in recorder.take().items()}


def test_a_record_becomes_a_step_its_batch_and_its_tokens():
    recorder = Recorder()
    recorder.starts = {7: 0.95}
    recorder.send(step(7, 1.0, Part("a", 30, 5, True), Part("b", 1, 9, False, 1), preempted=["c"], predicted_ms=42.0))
    found = tables(recorder)
    assert {name: table.schema for name, table in found.items()} == {name: TABLES[name] for name in found}
    [row] = as_rows(found["steps"])
    assert row == {
        "step": 7,
        "scheduled_s": pytest.approx(0.9),
        "start_s": 0.95,
        "end_s": 1.0,
        "prefill_tokens": 30,
        "decode_tokens": 1,
        "prefills": 1,
        "decodes": 1,
        "running": 2,
        "waiting": 1,
        "kv_use": 0.5,
        "preempted": ["c"],
        "revision": 3,
        "predicted_ms": 42.0,
    }
    assert as_rows(found["batch"]) == [
        {"step": 7, "request": "a", "tokens": 30, "context": 5, "prefill": True, "emitted": 0},
        {"step": 7, "request": "b", "tokens": 1, "context": 9, "prefill": False, "emitted": 1},
    ]
    assert as_rows(found["tokens"]) == [{"request": "b", "index": 0, "n": 1, "engine_s": 1.0, "step": 7}]


def test_tokens_are_counted_on_from_one_batch_of_rows_to_the_next():
    recorder = Recorder()
    recorder.send(step(1, 1.0, Part("a", 1, 0, False, 2)))
    tables(recorder)
    recorder.send(step(2, 2.0, Part("b", 1, 0, False, 1), Part("a", 1, 0, False, 1)))
    recorder.send(step(3, 3.0))
    found = tables(recorder)
    assert found["tokens"]["request"].to_pylist() == ["b", "a"]
    assert found["tokens"]["index"].to_pylist() == [0, 2]
    assert found["steps"]["decodes"].to_pylist() == [2, 0], "a step whose parts were all left out is an empty one"
    assert recorder.emitted == 4
    assert recorder.take() == {}


def test_knobs_in_force_at_the_start_need_no_answer_and_a_refusal_is_a_fault():
    recorder = Recorder()
    recorder.knobs(KnobChange(4, 512, 0, 8, "chunked"), 0.0, in_force=True)
    recorder.knobs(KnobChange(5, 256, 0, 8, "qos"), 1.5)
    recorder.send(KnobReply(4, 0.3, 1))
    recorder.send(KnobReply(5, 1.6, 9))
    recorder.send(KnobReply(6, 1.7, 10, "budget 9 outside 1..8"))
    recorder.send(Fault("policy qos", "ValueError: x"))
    found = as_rows(tables(recorder)["knobs"])
    assert [(row["revision"], row["applied_s"], row["step"]) for row in found] == [
        (4, 0.0, None),
        (5, None, None),
        (5, 1.6, 9),
    ]
    assert recorder.faults == ["knobs: revision 6 was refused: budget 9 outside 1..8", "policy qos: ValueError: x"]


def test_a_request_is_what_was_asked_and_how_it_ended():
    recorder = Recorder()
    recorder.request(Ask("a", "chat", 0, 9.0, 20, 3), 1.0, status="error", error="oom: x")
    assert as_rows(tables(recorder)["requests"]) == [
        {
            "request": "a",
            "class": "chat",
            "priority": 0,
            "prompt_tokens": 20,
            "max_tokens": 3,
            "planned_s": 1.0,
            "status": "error",
            "error": "oom: x",
        }
    ]


def test_rows_leave_out_only_columns_that_are_null_throughout():
    table = pa.table({"a": [1, None], "b": pa.nulls(2, pa.int64()), "c": ["x", None], "d": [1.5, 2.5]})
    assert as_rows(table) == [{"a": 1, "c": "x", "d": 1.5}, {"a": None, "c": None, "d": 2.5}]
