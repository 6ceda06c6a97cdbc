"""Languages of what people read: one gettext catalogue, and the language that is spoken here and now.

English is what stands in the code. ``translate`` looks a message up when it is shown; ``marked`` only marks one that is
written down earlier, such as a constant of a module, which whoever shows it translates. :func:`phrase` makes a text
that is kept, exported or compared in English, and told by ``translate`` to whoever reads it; :func:`told_error` does so
of an error. ``make messages`` collects them all into ``workbench/locale``.

The language is that of the innermost :func:`speaking`, else of ``WORKBENCH_LANG``, else English. A thread begins with
none of its maker's: one that says something to people begins with :func:`speaking`.
"""

from __future__ import annotations

import gettext
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, Self

from workbench import redact
from workbench.errors import CeilingError, InputError, in_words
from workbench.printable import printable

LANGUAGES = {"en": "English", "zh": "简体中文"}
TAGS = {"en": "en", "zh": "zh-CN"}  # BCP 47, for a page: which shapes of Han characters are meant
VARIABLE = "WORKBENCH_LANG"  # environment variable
LOCALES = Path(__file__).with_name("locale")
DOMAIN = "workbench"
_FOLDERS = {"zh": "zh_CN"}
_SPELLED = {"english": "en", "chinese": "zh", "中文": "zh", "简体中文": "zh"}
_PARTS = ""  # no value has this name
_spoken: ContextVar[str | None] = ContextVar("language", default=None)


def language(name: str | None = None) -> str:
    """The short name of a language; none takes the one that is spoken.

    Args:
        name: such as ``zh``, ``zh-CN`` or ``zh_CN.UTF-8``.

    Raises:
        InputError: there are no messages in it.
    """
    if name is None:
        return spoken()
    short = name.strip().lower()
    short = _SPELLED.get(short, short.partition(".")[0].partition("_")[0].partition("-")[0])
    if short not in LANGUAGES:
        known = ", ".join(f"{code} ({words})" for code, words in LANGUAGES.items())
        raise InputError("language", name, f"one of {known}", "choose one of these")
    return short


def spoken() -> str:
    """The language that is spoken here.

    Raises:
        InputError: ``WORKBENCH_LANG`` is one that there are no messages in.
    """
    return _spoken.get() or language(os.environ.get(VARIABLE) or "en")


@contextmanager
def speaking(name: str | None) -> Iterator[str]:
    """Speak a language within; none goes on with the one that is spoken.

    Raises:
        InputError: there are no messages in it.
    """
    short = language(name)
    before = _spoken.set(short)
    try:
        yield short
    finally:
        _spoken.reset(before)


def translate(message: str, /, **values: Any) -> str:
    """A message in the language that is spoken; one that is not in the catalogue stays as it is.

    Args:
        message: in English, with ``{name}`` where values go, and their format; or a text of :func:`phrase`.
        **values: for the places; without any, braces are nothing special. Those of :func:`phrase` are told, too.
    """
    if isinstance(message, Phrase):
        return message.told()
    found = _catalogue(spoken()).gettext(message) if message else message
    return found.format(**_told(values)) if values else found


def counted(one: str, many: str, n: int, /, **values: Any) -> str:
    """The same of a message that depends on a number, which stands in it as ``{n}``.

    Args:
        one: the message of one.
        many: of any other number.
        n: how many.
        **values: for the other places.
    """
    return _catalogue(spoken()).ngettext(one, many, n).format(n=n, **_told(values))


class Phrase(str):
    """A text in English that knows what it was made of, so that it can be told in another language where it is read."""

    _made: tuple[tuple[str, ...], Mapping[str, Any]]

    @classmethod
    def of(cls, text: str, messages: tuple[str, ...], values: Mapping[str, Any]) -> Self:
        """The text of one message, of two that a number ``n`` chooses from, or of the parts between a separator."""
        new = cls(text)
        new._made = messages, values
        return new

    def __add__(self, other: str) -> Phrase:
        return phrases("", (self, other))

    def __radd__(self, other: str) -> Phrase:
        return phrases("", (other, self))

    def told(self) -> str:
        """The text in the language that is spoken."""
        messages, values = self._made
        if _PARTS in values:
            between = translate(messages[0])
            return between.join(part.told() if isinstance(part, Phrase) else part for part in values[_PARTS])
        if len(messages) > 1:
            return counted(messages[0], messages[1], values["n"], **{k: v for k, v in values.items() if k != "n"})
        return translate(messages[0], **values)


def phrase(message: str, /, **values: Any) -> Phrase:
    """A message in English that :func:`translate` tells in the language that is spoken then; see there."""
    return Phrase.of(message.format(**values) if values else message, (message,), values)


def phrase_counted(one: str, many: str, n: int, /, **values: Any) -> Phrase:
    """The same of a message that depends on a number; see :func:`counted`."""
    return Phrase.of((one if n == 1 else many).format(n=n, **values), (one, many), {"n": n, **values})


def phrases(between: str, parts: Iterable[str]) -> Phrase:
    """The same of several texts with a separator between them; each part is told, and so is the separator."""
    every = tuple(parts)
    return Phrase.of(between.join(every), (between,), {_PARTS: every})


def marked(message: str) -> str:
    """The message as it is, for the catalogue to have it."""
    return message


def told_error(error: BaseException) -> str:
    """An error as one line, in the language that is spoken where it was made of phrases; else in English, as kept.

    One about an input is told where both what was expected and what to do about it are phrases.
    """
    words: object = getattr(error, "said", "")
    if isinstance(error, InputError):
        words = phrase_of(error)
    try:
        return " ".join(printable(redact.text(words.told())).split()) if isinstance(words, Phrase) else in_words(error)
    except InputError:  # WORKBENCH_LANG is none, and that may be the very error
        return in_words(error)


def phrase_of(error: InputError) -> str:
    """The message of an error about an input as a phrase; in plain English where its parts are not."""
    fix = error.fix
    if isinstance(error, CeilingError) and isinstance(error.otherwise, Phrase):
        fix = phrase(
            "{otherwise}, or start again with {field}={wants}",
            otherwise=error.otherwise,
            field=error.field,
            wants=error.wants,
        )
    if not (isinstance(error.expected, Phrase) and isinstance(fix, Phrase)):
        return str(error)
    value = error.value if isinstance(error.value, Phrase) else error.shown
    return phrase(
        "{what}: got {value!r}, expected {expected}; {fix}",
        what=error.what,
        value=value,
        expected=error.expected,
        fix=fix,
    )


def _told(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.told() if isinstance(value, Phrase) else value for name, value in values.items()}


@cache
def _catalogue(name: str) -> gettext.NullTranslations:
    """The messages in a language; English ones are those of the code."""
    if name not in _FOLDERS:
        return gettext.NullTranslations()
    return gettext.translation(DOMAIN, LOCALES, [_FOLDERS[name]])
