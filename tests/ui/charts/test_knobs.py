"""Knob revisions in words."""

from __future__ import annotations

import pytest

from workbench.config import Knobs
from workbench.ui.charts.data import further, revisions


def test_a_revision_that_was_never_applied_is_drawn_where_it_was_sent(trace, with_rows):
    values = {"budget": 64, "chunk": 32, "max_running": 8, "policy": "decode_first", "prefill_every": 4}
    knobs = [{"revision": 3, "sent_s": 1.5, **values}]
    (rule,) = revisions(with_rows(trace, knobs=knobs)).to_dict("records")
    assert rule == {
        "t": 1.5, "label": "rev 3", "revision": 3, "policy": "decode_first", "budget": 64, "chunk": "32",
        "running cap": 8, "prefill every": "4 steps", "also": "-",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({}, "-"),
        ({"watermark": None, "reserve_full": None, "prefix_cache": None, "target_gap_ms": None}, "-"),
        ({"policy": "target_gap", "target_gap_ms": 80.0, "aging_s": 5.0}, "target gap 80 ms"),
        ({"policy": "target_gap"}, "target gap 200 ms"),
        ({"policy": "qos", "target_gap_ms": 80.0, "aging_s": 5.5}, "aging 5.5 s"),
        ({"watermark": 0.05, "reserve_full": False}, "watermark 5 % · reserve whole prompt off"),
        ({"prefix_cache": False}, "prefix cache off"),
    ],
)
def test_only_knobs_that_say_something_are_told(values, words):
    assert further({**Knobs(budget=64, max_running=8).model_dump(), **values}) == words
