"""Errors of the command-line library in our form; a small command of our own has them all."""

from typing import Annotated

import pytest
import typer

from workbench.usage import explain, is_usage_error

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
    assert said(*argv).startswith("--size: got 'many', expected a valid integer")


def test_a_bound_is_named():
    line = said("play", "x", "--size", "12")
    assert line.startswith("--size: got '12', expected ")
    assert "9" in line
    assert line.endswith("; see tool play --help")


def test_other_errors_are_not_those_of_the_library():
    assert not is_usage_error(ValueError("x"))


def test_help_is_no_error():
    class HelpError(Exception):
        def format_message(self):
            return ""

    assert explain(HelpError(), []) is None
