"""Urgency as people write it: numbers, or the names of the first three."""

import pytest
from pydantic import TypeAdapter

from workbench.config import parse
from workbench.errors import ScenarioError
from workbench.workload.priority import Priority, number_of
from workbench.workload.stream import Stream

STREAM = {"class": "chat", "arrivals": {"kind": "at_once", "count": 1}, "prompt_tokens": 8, "output_tokens": 4}


@pytest.mark.parametrize(
    ("written", "number"),
    [(0, 0), (1, 1), (2, 2), (3, 3), (1000, 1000), ("vip", 0), ("VIP", 0), (" normal ", 1), ("Offline", 2)],
)
def test_numbers_and_names_are_the_same_thing(written, number):
    assert number_of(written) == number
    assert parse(Stream, STREAM | {"priority": written}, error=ScenarioError).priority == number


@pytest.mark.parametrize("written", [-1, -1000, 1001, 1.0, True, None, "", "urgent", "0", [0]])
def test_anything_else_is_refused_with_the_names(written):
    with pytest.raises(ScenarioError) as refused:
        parse(Stream, STREAM | {"priority": written}, error=ScenarioError)
    assert refused.value.what == "priority"
    assert refused.value.expected.startswith(
        "vip, normal, offline (which may also be written 0, 1, 2) or a larger whole number up to 1000"
    )


def test_a_name_that_is_nearly_right_is_guessed():
    with pytest.raises(ScenarioError, match=r"did you mean offline\?"):
        parse(Stream, STREAM | {"priority": "off-line"}, error=ScenarioError)


def test_a_stream_that_says_nothing_is_normal():
    assert parse(Stream, STREAM).priority == 1


def test_it_is_written_as_its_number():
    assert parse(Stream, STREAM | {"priority": "vip"}).model_dump(mode="json")["priority"] == 0
    assert TypeAdapter(Priority).json_schema()["type"] == "integer"
