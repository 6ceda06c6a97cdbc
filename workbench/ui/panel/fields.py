"""From a field of a configuration to a control: its text is the tooltip, its unit stands in the label.

Values reach the browser as plain text, so nothing in them is ever markup.
"""

from __future__ import annotations

import functools
import re
import shlex
import types
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from workbench.i18n import marked, translate
from workbench.ui.panel.controls import Choice, Control, Entry, inserted

DEFAULT = marked("default")  # how None reads: vLLM chooses
_HIGHEST = 1e9  # of a number that has no bound of its own
_ABBREVIATION = 3  # letters of a unit at most
_THOUSANDS = re.compile(r"\d{1,3}(,\d{3})+")


def control(
    model: type[BaseModel],
    name: str,
    *,
    options: Sequence[Any] | None = None,
    slider: bool = False,
    text: Callable[[Any], str] | None = None,
    default: Any = None,
) -> Control:
    """Make the control of one field.

    Args:
        model: the configuration.
        name: the field.
        options: values to choose from, such as :func:`powers_of_two`; for a field without choices of its own.
        slider: a slider instead of a drop-down.
        text: how an option reads; by default with thousands separators, and None as "default".
        default: for a field that has none.
    """
    field = model.model_fields[name]
    kind, optional = _kind(field.annotation)
    default = default if field.is_required() else field.default
    label, hint = label_of(model, name), hint_of(model, name)
    if get_origin(kind) is Literal:
        options = get_args(kind)
    elif kind is bool and optional:
        options = (True, False)
    if options is not None:
        options = [None, *options] if optional and None not in options else options
        return choice(name, label, hint, options, default, slider=slider, text=text or spelled)
    if kind is bool:
        return Control("check", name, label, hint, default)
    if kind is float and not optional:
        low, high = _bounds(field.metadata)
        return Control("number", name, label, hint, default, min=low, max=high)
    return Entry(name, label, hint, default, _reader(kind), placeholder=translate(DEFAULT if optional else "none"))


def choice(
    name: str,
    label: str,
    hint: str,
    options: Iterable[Any],
    default: Any,
    *,
    slider: bool = False,
    text: Callable[[Any], str] | None = None,
) -> Choice:
    """Make a control that is of no configuration's field; ``default`` is among the options in any case."""
    kind = "slider" if slider else "choice"
    return Choice(kind, name, label, hint, default, inserted(options, default), text or spelled)


def suggesting(model: type[BaseModel], name: str, options: Sequence[str]) -> Control:
    """A text field that offers ``options`` and takes anything else too."""
    label, hint, default = label_of(model, name), hint_of(model, name), model.model_fields[name].default
    return Entry(name, label, hint, default, str, placeholder=default, suggestions=list(options))


def label_of(model: type[BaseModel], name: str) -> str:
    """The visible label of a field: its words, and its unit where they do not say it."""
    words, unit = (translate(part) for part in words_of(model, name))
    return translate("{label} ({unit})", label=words, unit=unit) if unit else words


def words_of(model: type[BaseModel], name: str) -> tuple[str, str]:
    """The words of a field's label, and its unit, which is empty where the words say it."""
    extra = model.model_fields[name].json_schema_extra
    known = extra if isinstance(extra, dict) else {}
    words, unit = str(known.get("label") or ""), str(known.get("unit") or "")
    if not words:
        words, end = name.replace("_", " "), f" {unit.lower()}"
        if unit and words.endswith(end):  # as in kv_cache_mib; a unit that is a word, as in batched tokens, stays
            if len(unit) > _ABBREVIATION:
                return words, ""
            words = words.removesuffix(end)
    return words, unit


def hint_of(model: type[BaseModel], name: str) -> str:
    """The tooltip of a field: its name as code has it, its text, and its flag."""
    field = model.model_fields[name]
    flag = field.json_schema_extra.get("flag") if isinstance(field.json_schema_extra, dict) else None
    said = f"{name}: {translate(str(field.description))}"
    return said + (translate(" Flag: {flag}.", flag=flag) if flag else "")


def powers_of_two(low: int, high: int) -> list[int]:
    """The powers of two from ``low`` on, and ``high`` itself as the last."""
    found = [1 << n for n in range(high.bit_length()) if low <= 1 << n < high]
    return [*found, high]


def spelled(value: Any) -> str:
    """How a value reads: thousands separators, words for true, false and none."""
    if value is None:
        return translate(DEFAULT)
    if isinstance(value, bool):
        return translate("on") if value else translate("off")
    return f"{value:,}" if isinstance(value, int) else str(value)


def _kind(annotation: Any) -> tuple[Any, bool]:
    """The type without None, and whether None is allowed."""
    if get_origin(annotation) in (Union, types.UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not type(None)]
        return kinds[0], len(kinds) < len(get_args(annotation))
    return annotation, False


def _bounds(rules: Iterable[Any]) -> tuple[float, float]:
    """What a number may be; "greater than" becomes the smallest step above that a person would type."""
    low, high = -_HIGHEST, _HIGHEST
    for rule in rules:
        low = rule.gt + 0.001 if hasattr(rule, "gt") else getattr(rule, "ge", low)
        high = getattr(rule, "le", high)
    return low, high


def _reader(kind: Any) -> Callable[[str], Any]:
    """What turns a text into a value; a text that makes no sense is left for the configuration to refuse."""
    if get_origin(kind) is tuple:
        return _words
    if kind in (int, float):
        return functools.partial(_number, kind)
    return lambda text: text or None


def _number(kind: type[int] | type[float], text: str) -> Any:
    if kind is int and _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    with suppress(ValueError):
        return kind(text)
    return text or None


def _words(text: str) -> Any:
    with suppress(ValueError):
        return tuple(shlex.split(text))
    return text
