"""What was wrong with a command line, in one line like all errors: what, the value, what was expected, what to do.

The command-line library's own errors are told apart by what they carry: their classes are private to it. Errors of the
workbench, which know fields and knobs, are put in the words of the command line: options, and what can be added to it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any

from workbench.errors import CeilingError, InputError
from workbench.i18n import phrase

_NO_COMMAND = re.compile(r"No such command '(?P<name>.*?)'")
_NAME = re.compile(r"(?:--)?([a-z][a-z0-9_-]*)")
_RESTARTED = ("max_num_batched_tokens", "max_num_seqs")  # start-up fields that sweep --restart takes from the knobs
_WORDS = (  # the library's own, and ours
    (re.compile(r",? unable to parse .*"), ""),
    (re.compile(r"a valid integer"), "a whole number"),
    (re.compile(r"a valid (number|float)"), "a number"),
    (re.compile(r"a valid boolean"), "true or false"),
    (re.compile(r"greater than or equal to (\S+)"), r"\1 or more"),
    (re.compile(r"less than or equal to (\S+)"), r"\1 or less"),
)
_KINDS = ("a whole number", "a number", "true or false")
_BOUND = re.compile(r"(\S+) or (more|less)")
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
    see = phrase("see {path} --help", path=path)
    option = getattr(error, "option_name", None)
    if option is not None and hasattr(error, "possibilities"):
        return InputError(
            phrase("option"),
            option,
            phrase("an option of {path}", path=path),
            _near(option, error.possibilities or ()) or see,
        )
    if option is not None:
        expected = phrase("no value") if "does not take a value" in said else phrase("a value")
        return InputError(option, given(option, argv), expected, see)
    if (found := _NO_COMMAND.match(said)) is not None:
        known = list(getattr(getattr(context, "command", None), "commands", {}))
        expected = phrase("one of {names}", names=", ".join(known))
        return InputError(phrase("command"), found["name"], expected, _near(found["name"], known) or see)
    if (found := _EXTRA.match(said)) is not None:
        return InputError(phrase("command line"), found["words"], phrase("nothing more after {path}", path=path), see)
    parameter: Any = getattr(error, "param", None)
    if parameter is None:
        return InputError("command line", " ".join(argv), _plain(said), see)
    names = [name for name in parameter.opts if name.startswith("-")]
    what = names[0] if names else str(parameter.metavar or parameter.name).upper()
    if hasattr(error, "param_type"):  # it is missing
        return InputError(what, phrase("nothing"), phrase("a value"), see)
    return InputError(what, given(what, argv), _plain(str(getattr(error, "message", said))), see)


def as_typed(error: InputError, argv: Sequence[str]) -> InputError:
    """The same error with what is wrong named as it was typed, and a way out that can be typed.

    Args:
        error: names a start-up field, a knob or an argument, or something else, which is left as it is.
        argv: the words after the command's name.
    """
    what, value, fix = error.what, error.value, error.fix
    if isinstance(error, CeilingError):
        restart = argv[:1] == ["sweep"] and error.field in _RESTARTED
        option = "--restart" if restart else f"--set {error.field}={error.wants}"
        fix = phrase("{otherwise}, or add {option}", otherwise=error.otherwise, option=option)
    found = _NAME.fullmatch(what)
    if found is not None:
        name = found[1].replace("-", "_")
        option, pairs = f"--{name.replace('_', '-')}", _pairs(argv)
        if ("--set", name) in pairs:
            what, value = "--set", f"{name}={pairs['--set', name]}"
        elif given(option, argv, "") or option in argv:
            what = option
        elif ("--knob", name) in pairs:
            what = f"--knob {name}"
        elif what == "--model":  # a verb without this option
            what = name
    return InputError(what, value, error.expected, fix)


def _pairs(argv: Sequence[str]) -> dict[tuple[str, str], str]:
    """The values of ``--set name=value`` and ``--knob name=value``, by option and name."""
    pairs = {}
    for place, word in enumerate(argv):
        option, sign, text = word.partition("=")
        if option in ("--set", "--knob"):
            text = text if sign else "".join(argv[place + 1 : place + 2])
            name, _, value = text.partition("=")
            pairs[option, name.strip().replace("-", "_")] = value
    return pairs


def _near(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return phrase("did you mean {name}?", name=near[0]) if near else ""


def given(option: str, argv: Sequence[str], nothing: str = "nothing") -> str:
    """The value that an option was given, as it stands on the command line."""
    for place, word in enumerate(argv):
        if word.startswith(f"{option}="):
            return word.partition("=")[2]
        if word == option:
            return argv[place + 1] if place + 1 < len(argv) else nothing
    return nothing


def _plain(text: str) -> str:
    """A sentence of the library as the end of ours; what it says most is a text that can be told."""
    text = text.removeprefix("Input should be ").strip().rstrip(".")
    for raw, ours in _WORDS:
        text = raw.sub(ours, text)
    text = text[:1].lower() + text[1:]
    bound = _BOUND.fullmatch(text)
    if bound is not None:
        least, most = phrase("{ge} or more", ge=bound[1]), phrase("{le} or less", le=bound[1])
        return least if bound[2] == "more" else most
    return phrase(text) if text in _KINDS else text
