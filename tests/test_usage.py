"""Errors of the command-line library in our form; a small command of our own has them all."""

from typing import Annotated

import pytest
import typer

from workbench.errors import CeilingError, InputError
from workbench.usage import as_typed, explain, is_usage_error

app = typer.Typer(add_completion=False)


@app.command()
def play(name: str, size: Annotated[int, typer.Option(min=1, max=9)] = 1, fast: bool = False) -> None:
    pass


@app.command()
def stop() -> None:
    pass


def said(*argv):
    with pytest.raises(Exception) as bad:  # its classes are private
        app(list(argv), prog_name="tool", standalone_mode=False)
    assert is_usage_error(bad.value)
    error = explain(bad.value, argv)
    return error and str(error)


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["paly", "x"], "command: got 'paly', expected one of play, stop; did you mean play?"),
        (["zzz"], "command: got 'zzz', expected one of play, stop; see tool --help"),
        (["play"], "NAME: got 'nothing', expected a value; see tool play --help"),
        (["play", "x", "--szie", "3"], "option: got '--szie', expected an option of tool play; did you mean --size?"),
        (["play", "x", "--zzz"], "option: got '--zzz', expected an option of tool play; see tool play --help"),
        (["play", "x", "--size"], "--size: got 'nothing', expected a value; see workbench --help"),
        (["play", "x", "--fast=yes"], "--fast: got 'yes', expected no value; see workbench --help"),
        (
            ["play", "x", "y", "z"],
            "command line: got 'y z', expected nothing more after tool play; see tool play --help",
        ),
        (["stop", "now"], "command line: got 'now', expected nothing more after tool stop; see tool stop --help"),
    ],
)
def test_each_is_one_line_with_the_four_parts(argv, line):
    assert said(*argv) == line


@pytest.mark.parametrize("argv", [["play", "x", "--size", "many"], ["play", "x", "--size=many"]])
def test_the_value_is_the_one_that_was_typed(argv):
    assert said(*argv) == "--size: got 'many', expected a whole number; see tool play --help"


@pytest.mark.parametrize(("value", "expected"), [("12", "9 or less"), ("0", "1 or more")])
def test_a_bound_is_named(value, expected):
    assert said("play", "x", "--size", value) == f"--size: got '{value}', expected {expected}; see tool play --help"


@pytest.mark.parametrize(
    ("argv", "what", "value"),
    [
        (["run", "x", "--set", "foo=1"], "--set", "foo=1"),
        (["run", "x", "--set=foo=1"], "--set", "foo=1"),
        (["run", "x", "--set", "bar=1"], "foo", "bad"),
        (["run", "x", "--foo", "1"], "--foo", "bad"),
        (["run", "x", "--foo=1"], "--foo", "bad"),
        (["run", "x", "--knob", "foo=1"], "--knob foo", "bad"),
        (["run", "x"], "foo", "bad"),
        (["run", "foo"], "foo", "bad"),
        (["run", "x", "--set"], "foo", "bad"),
    ],
)
def test_a_field_is_named_as_it_was_typed(argv, what, value):
    error = as_typed(InputError("foo", "bad", "a good one", "correct it"), argv)
    assert str(error) == f"{what}: got '{value}', expected a good one; correct it"


def test_what_is_no_field_stays_as_it_is():
    error = InputError("mine.yaml: foo", "bad", "a good one", "correct it")
    assert str(as_typed(error, ["run", "mine.yaml", "--set", "foo=1"])) == str(error)


def test_an_option_that_the_verb_has_not_is_not_named():
    error = InputError("--model", "gpt-9", "a model", "choose another")
    assert as_typed(error, ["run", "x"]).what == "model"
    assert as_typed(error, ["run", "x", "--set", "model=gpt-9"]).what == "--set"
    assert as_typed(error, ["plan", "--model", "gpt-9"]).what == "--model"


@pytest.mark.parametrize(
    ("verb", "field", "fix"),
    [
        ("sweep", "max_num_batched_tokens", "--restart"),
        ("sweep", "max_num_seqs", "--restart"),
        ("sweep", "max_model_len", "--set max_model_len=9000"),
        ("run", "max_num_batched_tokens", "--set max_num_batched_tokens=9000"),
    ],
)
def test_the_way_over_a_ceiling_can_be_typed(verb, field, fix):
    error = CeilingError("budget", 9000, "at most 8192", "choose 8192 or less", field, 9000)
    assert str(error).endswith(f"; choose 8192 or less, or start again with {field}=9000")
    assert as_typed(error, [verb, "x"]).fix == f"choose 8192 or less, or add {fix}"


def test_other_errors_are_not_those_of_the_library():
    assert not is_usage_error(ValueError("x"))


def test_help_is_no_error():
    class HelpError(Exception):
        def format_message(self):
            return ""

    assert explain(HelpError(), []) is None
