"""What of the engine is used up, by figures made by hand."""

from __future__ import annotations

import pytest

from workbench.planning.step_facts import used_up

CALM = {"preemptions": 0.0, "kv_max": 0.5, "waiting_mean": 0.0, "running_max": 3.0, "at_cap": 0.0}


@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({}, ""),
        ({"preemptions": 1.0}, "KV pool full"),
        ({"kv_max": 0.95, "waiting_mean": 0.21}, "KV pool full"),
        ({"kv_max": 0.95, "waiting_mean": 0.2}, ""),
        ({"kv_max": 0.94, "waiting_mean": 9.0}, ""),
        ({"running_max": 8.0, "at_cap": 0.2}, "running cap of 8"),
        ({"running_max": 8.0, "at_cap": 0.19}, ""),
        ({"running_max": 7.0, "at_cap": 0.9}, ""),
        ({"running_max": 8.0, "at_cap": 0.9, "preemptions": 2.0}, "KV pool full"),
    ],
)
def test_what_of_the_engine_is_used_up(facts, words):
    assert used_up(CALM | facts, 8) == words


def test_what_is_not_known_is_not_used_up():
    assert used_up(dict.fromkeys(CALM), 8) == ""
    assert used_up({}, 8) == ""
    assert used_up(CALM | {"running_max": 8.0, "at_cap": 0.9}, None) == ""
