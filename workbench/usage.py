"""What was wrong with a command line, in one line like all errors: what, the value, what was expected, what to do.

The command-line library's own errors are told apart by what they carry: their classes are private to it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any

from workbench.errors import InputError

_NO_COMMAND = re.compile(r"No such command '(?P<name>.*?)'")
_EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((?P<words>.*)\)")


def is_usage_error(error: Exception) -> bool:
    """Whether the command-line library raised it."""
    return hasattr(error, "format_message")


def explain(error: Exception, argv: Sequence[str]) -> InputError | None:
    """Say what is wrong with a command line.

    Args:
        error: of the command-line library.
        argv: the words after the command's name.

    Returns:
        The error in our form; none if all it wanted was to show help.
    """
    said = str(error.format_message())  # type: ignore[attr-defined]
    if not said:
        return None
    context: Any = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "workbench"
    see = f"see {path} --help"
    option = getattr(error, "option_name", None)
    if option is not None and hasattr(error, "possibilities"):
        return InputError("option", option, f"an option of {path}", _near(option, error.possibilities or ()) or see)
    if option is not None:
        expected = "no value" if "does not take a value" in said else "a value"
        return InputError(option, _given(option, argv), expected, see)
    if (found := _NO_COMMAND.match(said)) is not None:
        known = list(getattr(getattr(context, "command", None), "commands", {}))
        return InputError("command", found["name"], f"one of {', '.join(known)}", _near(found["name"], known) or see)
    if (found := _EXTRA.match(said)) is not None:
        return InputError("command line", found["words"], f"nothing more after {path}", see)
    parameter: Any = getattr(error, "param", None)
    if parameter is None:
        return InputError("command line", " ".join(argv), _plain(said), see)
    names = [name for name in parameter.opts if name.startswith("-")]
    what = names[0] if names else str(parameter.metavar or parameter.name).upper()
    if hasattr(error, "param_type"):  # it is missing
        return InputError(what, "nothing", "a value", see)
    return InputError(what, _given(what, argv), _plain(str(getattr(error, "message", said))), see)


def _near(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f"did you mean {near[0]}?" if near else ""


def _given(option: str, argv: Sequence[str]) -> str:
    """The value that an option was given, as it stands on the command line."""
    for place, word in enumerate(argv):
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
        if word == option:
            return argv[place + 1] if place + 1 < len(argv) else "nothing"
    return "nothing"


def _plain(text: str) -> str:
    """A sentence of the library as the end of ours."""
    text = text.removeprefix("Input should be ").strip().rstrip(".")
    return text[:1].lower() + text[1:]
