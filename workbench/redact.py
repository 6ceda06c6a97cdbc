"""Data and texts without secrets: for metadata on disk, logs, errors, reports, and commands that get pasted.

A secret is known by its name (``api_key``, ``--hf-token``, ``PASSWORD=``), by its place or shape (the password of an
address, ``Bearer …``, ``hf_…``), or by its value, where this process has used it as a key (:func:`know`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

HIDDEN = "HIDDEN"
LEAST = 8  # characters of a value that is hidden wherever it stands: a shorter one is also a word

_SECRET = re.compile(
    r"api[_-]?key|secret|passw|authori[sz]ation|credential|(hf|hub|access|auth|bearer|refresh|session)[_-]?token"
    r"|^--token$|private[_-]?key",
    re.I,
)
_VARIABLE = re.compile(r"[A-Z0-9]_TOKEN$")  # of an environment: "bos_token" is a tokenizer's
_IS_NAME = re.compile(r"[_-](env|file|path|name)$", re.I)  # says where the secret is, not what
_FLAG = re.compile(r"--?[A-Za-z][\w.-]*")
_WORD = r"""(?:"[^"\n]*"|'[^'\n]*'|[^\s"',;&|)}\]]+)"""
_FLAG_IN_TEXT = re.compile(rf"(?<![\w-])(--?[A-Za-z][\w-]*)(=|[ \t]+)(?!-)({_WORD})")
# NAME=value, "name": "value", name='value', {'name': ['value']}
_PAIR = re.compile(rf"""(?<![\w-])(["']?)([A-Za-z][\w-]*)\1(\s*[=:]\s*\[?)(?!\s)({_WORD})""")
_LOGIN = re.compile(r"\b([A-Za-z][A-Za-z0-9+.-]{0,30}://)[^\s/?#\"'<>]*@")
_QUERY = re.compile(
    r"([?&][\w.-]{0,60}(?:key|token|secret|signature|passw\w{0,9}|credential|sig|auth)=)[^&#\s\"'<>]+", re.I
)
_BEARER = re.compile(r"\b(Bearer|Basic)([ \t]+)[A-Za-z0-9._~+/=-]{4,}", re.I)
_SHAPES = re.compile(
    r"\b(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{10,}"
    r"|nvapi-[\w-]{20,}|AKIA[0-9A-Z]{16}|AIza[\w-]{30,}|eyJ[\w-]{10,4000}\.eyJ[\w-]{10,4000}\.[\w-]{10,})"
)

_known: dict[str, None] = {}  # in the order in which they came


def know(secret: str) -> None:
    """Hide this value from now on, wherever this process shows or keeps it; shorter ones than :data:`LEAST` are not.

    Hidden as well is how it stands in an address and in JSON.
    """
    if len(secret) >= LEAST:
        _known.update(dict.fromkeys((secret, quote(secret, safe=""), json.dumps(secret)[1:-1])))


def is_secret(name: str) -> bool:
    """Whether what stands under such a name is to be hidden."""
    return bool(_SECRET.search(name) or _VARIABLE.search(name)) and not _IS_NAME.search(name)


def redact(value: Any, name: str = "") -> Any:
    """The same plain data with the values of names that sound secret hidden, and what is secret in its texts.

    Args:
        value: dicts, lists, texts, numbers.
        name: under which it stands.
    """
    if (is_secret(name) or name.lower() == "token") and value not in (None, "") and not isinstance(value, bool):
        return HIDDEN
    if isinstance(value, dict):
        return {key: redact(item, str(key)) for key, item in value.items()}
    if isinstance(value, str):
        return text(value)
    if isinstance(value, list | tuple):
        plain = all(isinstance(item, str) for item in value)
        made = arguments(value) if plain else [redact(item) for item in value]
        return made if isinstance(value, list) else tuple(made)
    return value


def text(words: str) -> str:
    """A text with what is secret in it hidden: an error, a line of a log, a command."""
    for secret in _known:
        words = words.replace(secret, HIDDEN)
    if "://" in words:
        words = _QUERY.sub(rf"\1{HIDDEN}", _LOGIN.sub(rf"\1{HIDDEN}@", words))
    words = _BEARER.sub(rf"\1\2{HIDDEN}", words)
    words = _SHAPES.sub(HIDDEN, words)
    words = _FLAG_IN_TEXT.sub(lambda m: f"{m[1]}{m[2]}{_hidden(m[3])}" if is_secret(m[1]) else m[0], words)
    return _PAIR.sub(lambda m: f"{m[1]}{m[2]}{m[1]}{m[3]}{_hidden(m[4])}" if is_secret(m[2]) else m[0], words)


def _hidden(word: str) -> str:
    """In place of a word, with its quotes; one that says nothing stays."""
    bare = word.strip("\"'")
    if bare in ("", HIDDEN, "None", "null", "…", "NAME", "Bearer", "Basic"):
        return word
    return word[0] + HIDDEN + word[0] if word[0] in "\"'" else HIDDEN


def arguments(argv: Iterable[str]) -> list[str]:
    """A command line whose secret flags lost their values, be they the next words or behind ``=``."""
    out: list[str] = []
    hide = False
    for word in argv:
        flag, equals, _ = word.partition("=")
        if _FLAG.fullmatch(flag):
            hide = is_secret(flag)
        elif not hide:  # NAME=value, as for env(1)
            out.append(f"{flag}={HIDDEN}" if equals and is_secret(flag) else text(word))
            continue
        else:
            out.append(HIDDEN)
            continue
        out.append(f"{flag}={HIDDEN}" if hide and equals else text(word))
        hide = hide and not equals
    return out


def secrets_of(argv: Iterable[str], environment: Mapping[str, str]) -> list[str]:
    """The values that a command and its environment hold under secret names: what its output must not show."""
    found = [value for name, value in environment.items() if is_secret(name)]
    given = list(argv)
    for word, shown in zip(given, arguments(given), strict=True):
        if shown == HIDDEN:
            found.append(word)
        elif shown.endswith(f"={HIDDEN}"):
            found.append(word.partition("=")[2])
    return [value for value in dict.fromkeys(found) if len(value) >= LEAST]


class Stripper:
    """Takes known values out of a stream of bytes, also where a value lies across two pieces of it.

    Args:
        values: to be hidden.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = [value.encode() for value in values]
        self._kept = b""  # the beginning of a value, maybe

    def feed(self, data: bytes) -> bytes:
        """What can be shown of the stream so far."""
        data = self._kept + data
        for value in self._values:
            data = data.replace(value, HIDDEN.encode())
        held = max((_overlap(data, value) for value in self._values), default=0)
        self._kept = data[len(data) - held :] if held else b""
        return data[: len(data) - held]

    def close(self) -> bytes:
        """What was held back."""
        kept, self._kept = self._kept, b""
        return kept


def _overlap(data: bytes, value: bytes) -> int:
    """Bytes at the end of ``data`` that may be the beginning of ``value``."""
    most = min(len(data), len(value) - 1)
    return next((n for n in range(most, 0, -1) if data.endswith(value[:n])), 0)
