"""Who held KV before a step, on a run of which that is known."""

import pytest

from workbench.claims.journal import Journal
from workbench.errors import InputError

REQUESTS = {name: {"prompt_tokens": 40} for name in "abc"}


@pytest.fixture
def journal(play):
    steps = [
        {"a": (40, 0, True, 1)},
        {"a": (1, 40, False, 1), "b": (30, 0, True, 0)},
        ({"a": (1, 41, False, 1)}, {"preempted": ["b"]}),
        {"a": (1, 42, False, 1), "c": (40, 0, True, 1)},  # the last of a
        {"b": (40, 0, True, 1)},
        {"b": (1, 40, False, 1)},
    ]
    return Journal.of(play(steps, REQUESTS, knobs={"policy": "qos", "budget": 71}))


@pytest.mark.parametrize(
    ("step", "held"),
    [
        (0, {}),
        (1, {"a": 40}),
        (2, {"a": 41, "b": 30}),  # b is taken out while this step is planned
        (3, {"a": 42}),
        (4, {}),  # a and c never appear again
        (5, {"b": 40}),
    ],
)
def test_running_are_those_that_began_and_neither_ended_nor_were_preempted(journal, step, held):
    assert {journal.table.names[one]: done for one, done in journal.running(step).items()} == held


def test_knobs_and_columns_of_requests(journal):
    assert journal.policy == ["qos"] * 6
    assert journal.knob("budget").tolist() == [71] * 6
    assert journal.of_request("prompt_tokens").tolist() == [40] * 3


def test_a_run_without_steps_is_refused(play):
    with pytest.raises(InputError, match="no step records"):
        Journal.of(play([], REQUESTS))
