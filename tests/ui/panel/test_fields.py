"""Controls from fields: right values, visible units, hints, nothing that is markup."""

from __future__ import annotations

import threading
from typing import Literal

import pytest
from pydantic import Field

from workbench.config import EngineConfig, Frozen, Knobs
from workbench.ui.panel.controls import Choice
from workbench.ui.panel.fields import (
    choice,
    control,
    hint_of,
    label_of,
    powers_of_two,
    spelled,
    suggesting,
)


class Sample(Frozen):
    flag: bool = Field(True, description="A flag.")
    maybe: bool | None = Field(None, description="On, off or neither.")
    kind: Literal["a", "b"] | None = Field(None, description="A kind.")
    size_mib: int | None = Field(64, description="A size.", json_schema_extra={"unit": "MiB", "flag": "--size"})
    port: int | None = Field(None, description="A port.")
    share: float | None = Field(None, description="A share.")
    wait_s: float = Field(600.0, gt=0, description="A time.", json_schema_extra={"unit": "s"})
    percent: float = Field(50.0, ge=1, le=99, description="A part.", json_schema_extra={"unit": "%"})
    name: str | None = Field(None, description="A name.")
    words: tuple[str, ...] = Field((), description="Words.")


def kind(one):
    return one.kind


def test_each_kind_of_field_has_its_control():
    found = {name: kind(control(Sample, name)) for name in Sample.model_fields}
    assert found == {
        "flag": "check",
        "maybe": "choice",
        "kind": "choice",
        "size_mib": "text",
        "port": "text",
        "share": "text",
        "wait_s": "number",
        "percent": "number",
        "name": "text",
        "words": "text",
    }
    assert kind(control(Sample, "size_mib", options=[32, 64])) == "choice"
    assert kind(control(Knobs, "budget", options=[32, 64], slider=True, default=64)) == "slider"
    assert kind(suggesting(EngineConfig, "model", ["smollm2"])) == "text"


def test_each_starts_at_its_default():
    for name, field in Sample.model_fields.items():
        one = control(Sample, name)
        assert one.value == one.default == field.default, name


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("port", "8123", 8123),
        ("port", " 8,123 ", 8123),
        ("port", "8,12", "8,12"),  # no thousands: left to be refused
        ("port", "", None),
        ("share", "0.5", 0.5),
        ("share", "0,5", "0,5"),
        ("name", "FLASHINFER", "FLASHINFER"),
        ("name", "  ", None),
        ("words", "--a 'b c'", ("--a", "b c")),
        ("words", "", ()),
        ("words", "'open", "'open"),
    ],
)
def test_text_is_read(name, text, value):
    one = control(Sample, name)
    one.put(text)
    assert one.value == value


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [("port", 8123, "8123"), ("port", None, ""), ("words", ("a b", "c"), "'a b' c"), ("share", 0.5, "0.5")],
)
def test_values_are_shown_and_read_back(name, value, shown):
    one = control(Sample, name)
    one.show(value)
    assert one.raw == shown
    assert Sample.model_validate({name: one.value}) == Sample(**{name: value})


def test_none_is_a_choice_of_its_own():
    one = control(Sample, "maybe")
    assert one.tree()["options"] == ["default", "on", "off"]
    seen = []
    for place in (1, 2, 0):
        one.put(place)
        seen.append(one.value)
    assert seen == [True, False, None]
    one = control(Sample, "size_mib", options=[32, 64, 4096])
    assert one.tree()["options"] == ["default", "32", "64", "4,096"]
    assert one.value == 64


def test_the_unit_stands_in_the_label_once():
    assert label_of(Sample, "size_mib") == "size (MiB)"
    assert label_of(Sample, "wait_s") == "wait (s)"
    assert label_of(Sample, "percent") == "percent (%)"
    assert label_of(EngineConfig, "max_model_len") == "max model len (tokens)"
    assert label_of(EngineConfig, "max_num_batched_tokens") == "max num batched tokens"
    assert label_of(Knobs, "max_running") == "running cap (requests)"
    assert control(Sample, "wait_s").label == "wait (s)"


def test_the_hint_is_the_fields_text_with_its_name_and_flag():
    assert hint_of(Sample, "size_mib") == "size_mib: A size. Flag: --size."
    assert control(Sample, "flag").hint == "flag: A flag."


def test_bounds_of_numbers_are_those_of_the_field():
    assert control(Sample, "wait_s").tree()["min"] == 0.001
    one = control(Sample, "percent")
    assert (one.tree()["min"], one.tree()["max"]) == (1, 99)
    one.put(200.0)
    assert one.value == 50.0, "what the page must not send is not taken"


def test_a_persons_change_is_told_and_a_shown_one_is_not():
    for name, value, put in (("flag", False, False), ("kind", "b", 2), ("port", 80, "80"), ("wait_s", 9.0, 9.0)):
        one, told = control(Sample, name), []
        one.observe(lambda told=told: told.append(1))
        one.show(value)
        one.reset()
        assert not told
        one.put(put)
        assert told == [1]


def test_a_persons_change_is_not_lost_to_another_threads():
    one = control(Sample, "flag")
    told = []
    one.observe(lambda: told.append(one.value))

    def off_and_on():
        for n in range(2000):
            one.hint = f"hint {n}"

    thread = threading.Thread(target=off_and_on)
    thread.start()
    for n in range(1001):
        one.put(n % 2 == 1)
    thread.join()
    assert len(told) == 1001
    assert (one.value, one.hint) == (False, "hint 1999")


def test_a_value_that_is_not_offered_is_put_among_the_others():
    one = choice("budget", "budget", "", powers_of_two(16, 64), 64, slider=True)
    told = []
    one.observe(lambda: told.append(1))
    one.show(48)
    assert (one.options, one.value, one.shown) == ((16, 32, 48, 64), 48, "48")
    one.show(100)
    assert one.options == (16, 32, 48, 64, 100)
    assert choice("x", "x", "", [0, 1], 5).value == 5
    assert not told


def test_offering_others_tells_nobody_and_shows_what_is_asked():
    one = choice("budget", "budget", "", [1, 2, 4], 4)
    told = []
    one.observe(lambda: told.append(1))
    one.offer([8, 16], 16)
    assert (one.value, one.shown) == (16, "16")
    one.offer([1, 2], 1)
    assert one.value == 1
    assert not told


def test_what_was_on_its_way_when_it_was_disabled_is_not_taken():
    one, told = choice("x", "x", "", [1, 2], 1, slider=True), []
    one.observe(lambda: told.append(1))
    one.disabled = True
    one.take({"value": 1, "tag": "page:1"})
    assert (one.value, told) == (1, [])
    assert one.tree()["heard"] == "page:1", "the page may show what is in force again"


@pytest.mark.parametrize("raw", [7, -1, "1", None, True, 0.5])
def test_a_place_that_is_not_offered_is_not_taken(raw):
    one = choice("x", "x", "", [1, 2], 1)
    one.put(raw)
    assert one.value == 1


def test_disabled_is_told_to_the_page():
    one = control(Sample, "flag")
    one.disabled = True
    assert one.tree()["off"] is one.disabled is True


def test_powers_of_two_end_with_the_bound():
    assert powers_of_two(16, 100) == [16, 32, 64, 100]
    assert powers_of_two(16, 64) == [16, 32, 64]
    assert powers_of_two(16, 16) == [16]
    assert powers_of_two(1, 1) == [1]


def test_how_values_read():
    assert [spelled(value) for value in (8192, None, True, False, "fcfs")] == ["8,192", "default", "on", "off", "fcfs"]


def test_labels_of_options_differ():
    one = choice("x", "x", "", [0, 16], 0, text=lambda value: str(value) if value else "off")
    assert isinstance(one, Choice)
    assert one.tree()["options"] == ["off", "16"]
