from __future__ import annotations

import numpy as np

from workbench.metrics.step_table import StepTable


def test_steps_are_in_the_order_of_their_ends_and_parts_in_theirs(trace):
    steps = [
        {"step": 7, "scheduled_s": 2.9, "start_s": 3.0, "end_s": 4.0, "prefill_tokens": 5, "preempted": ["z", "a"]},
        {"step": 8, "scheduled_s": 3.1, "start_s": 3.2, "end_s": 4.5, "preempted": None},  # in flight with 7
        {"step": 6, "scheduled_s": 1.0, "end_s": 2.0, "preempted": []},  # the worker's share of the record was lost
        {"step": 9, "scheduled_s": 4.4},  # not done yet
    ]
    batch = [
        {"step": 8, "request": "a", "tokens": 1, "context": 9, "prefill": False, "emitted": 1},
        {"step": 7, "request": "a", "tokens": 5, "context": 4, "prefill": True},
        {"step": 7, "request": "b", "tokens": 2, "prefill": None},
        {"step": 5, "request": "a", "tokens": 4, "context": 0, "prefill": True},  # its step's record is not there
        {"step": 9, "request": "a", "tokens": 1},
    ]
    found = StepTable.of(trace(steps=steps, batch=batch))
    assert found.row.tolist() == [2, 0, 1]
    assert found.number.tolist() == [6, 7, 8]
    assert found.scheduled_s.tolist() == [1.0, 2.9, 3.1]
    assert found.begin_s.tolist() == [1.0, 3.0, 4.0]
    assert found.seconds.tolist() == [1.0, 1.0, 0.5]
    assert np.isnan(found.prefill_tokens).tolist() == [True, False, True]
    assert [found.names[i] for i in found.part_of] == ["a", "b", "a"]
    assert found.part_step.tolist() == [1, 1, 2]
    assert found.part_tokens.tolist() == [5, 2, 1]
    assert found.part_prefill.tolist() == [True, False, False]
    assert np.isnan(found.part_context).tolist() == [False, True, False]
    assert [(found.names[i], s) for i, s in zip(found.victim_of, found.victim_step, strict=True)] == [
        ("z", 1),
        ("a", 1),
    ]
    assert found.records_victims
    assert [found.names[i] for i in found.part_of[found.by_request]] == ["a", "a", "b"]
    assert found.had_output.tolist() == [False, False, False]


def test_nothing(trace):
    found = StepTable.of(trace())
    assert not len(found.number)
    assert not len(found.part_of)
    assert not found.records_victims
    assert not StepTable.of(trace(steps=[{"step": 1, "end_s": 1.0}])).records_victims
