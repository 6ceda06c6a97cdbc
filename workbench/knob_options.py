"""Hot knobs on the command line: ``--knob name=value``, or ``name=a,b`` where several settings are played."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.config import Knobs, parse
from workbench.errors import EnvelopeError, InputError
from workbench.i18n import phrase
from workbench.json_file import parse_json
from workbench.workload.scenario import Setting


def single_knobs(knobs: Sequence[str] | None, options: Mapping[str, object] | None = None) -> dict[str, Any]:
    """The knobs of a verb that plays under one value of each; see :func:`knob_values`.

    Raises:
        EnvelopeError: there is no such knob, or a value is of the wrong kind.
        InputError: a text is not ``name=value``, a knob is given twice, or it has several values.
    """
    return one_value_each(knob_values(knobs, options, several=False))


def knob_values(
    knobs: Sequence[str] | None, options: Mapping[str, object] | None = None, *, several: bool = True
) -> dict[str, list[Any]]:
    """The values of each knob that was given, in the order of the knobs.

    Args:
        knobs: ``name=value`` or ``name=a,b`` texts.
        options: knobs that have an option of their own (``budget`` is ``--budget``), with its value or none.
        several: whether the verb tries several values of a knob, for the words of an error.

    Raises:
        EnvelopeError: there is no such knob, or a value is of the wrong kind.
        InputError: a text is not ``name=value``, or a knob is given twice.
    """
    texts = {name: str(value) for name, value in (options or {}).items() if value is not None}
    said = {name: f"--{name.replace('_', '-')}" for name in texts}
    for text in knobs or ():
        name, sign, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not sign or not value.strip():
            raise InputError(
                "--knob", text, phrase("name=value"), phrase("write it like {example}", example="--knob policy=qos")
            )
        if name not in Knobs.model_fields:
            near = difflib.get_close_matches(name, Knobs.model_fields, 1)
            fix = phrase("did you mean {name}?", name=near[0]) if near else phrase("choose one of these")
            expected = phrase("one of {names}", names=", ".join(Knobs.model_fields))
            raise EnvelopeError("--knob", name, expected, fix)
        if name in texts:
            both = f"{said[name]} and --knob {name}" if said[name] != "--knob" else f"--knob {name}, twice"
            raise InputError(both, f"{texts[name]} and {value}", phrase("each knob once"), phrase("leave one out"))
        texts[name], said[name] = value, "--knob"
    return {
        name: _values(f"--knob {name}" if said[name] == "--knob" else said[name], name, texts[name], several)
        for name in Knobs.model_fields
        if name in texts
    }


def one_value_each(values: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """The knobs of a verb that plays under one value of each.

    Raises:
        InputError: there are several.
    """
    for name, several in values.items():
        if len(several) > 1:
            shown = ",".join(map(str, several))
            fix = phrase("give one, or use workbench sweep to try several")
            raise InputError(phrase("knob {name}", name=name), shown, phrase("one value"), fix)
    return {name: several[0] for name, several in values.items()}


def _values(option: str, knob: str, text: str, several: bool) -> list[Any]:
    """The values between the commas, each of the knob's own kind."""
    values = []
    for part in text.split(","):
        try:
            setting = parse(Setting, {"name": option, knob: _scalar(part.strip())}, error=EnvelopeError)
        except EnvelopeError as bad:
            fix = phrase("give one, or several with commas between") if several else phrase("give one")
            raise EnvelopeError(option, part.strip() or text, bad.expected, fix) from None
        values.append(getattr(setting, knob))
    return values


def _scalar(text: str) -> Any:
    """JSON where it parses, else text; what stands for nothing is text too, so that it is refused."""
    try:
        value = parse_json(text)
    except ValueError:
        return text
    return text if value is None or isinstance(value, list | dict) else value
