"""Data without secrets: for metadata on disk, reports, and commands that get pasted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

HIDDEN = "HIDDEN"
_SECRET = re.compile(r"api[_-]?key|secret|passw|authori[sz]ation|credential|(hf|access|auth|bearer)[_-]?token", re.I)
_FLAG = re.compile(r"--?[A-Za-z][\w.-]*")
_FLAG_IN_TEXT = re.compile(r"(--?[A-Za-z][\w-]*)(=|\s+)([^\s-]\S*)")


def redact(value: Any, name: str = "") -> Any:
    """The same plain data with the values of names that sound secret, and of such flags in command lines, hidden.

    Args:
        value: dicts, lists, texts, numbers.
        name: under which it stands.
    """
    if name and _SECRET.search(name) and value is not None:
        return HIDDEN
    if isinstance(value, dict):
        return {key: redact(item, key) for key, item in value.items()}
    if isinstance(value, str):
        return _FLAG_IN_TEXT.sub(lambda m: m[0] if not _SECRET.search(m[1]) else f"{m[1]}{m[2]}{HIDDEN}", value)
    if isinstance(value, list):
        return arguments(value) if all(isinstance(item, str) for item in value) else [redact(v) for v in value]
    return value


def arguments(argv: Iterable[str]) -> list[str]:
    """A command line whose secret flags lost their values, be they the next words or behind ``=``."""
    out: list[str] = []
    hide = False
    for word in argv:
        flag, equals, _ = word.partition("=")
        if _FLAG.fullmatch(flag):
            hide = bool(_SECRET.search(flag))
        elif not hide:  # NAME=value, as for env(1)
            out.append(f"{flag}={HIDDEN}" if equals and _SECRET.search(flag) else word)
            continue
        else:
            out.append(HIDDEN)
            continue
        out.append(f"{flag}={HIDDEN}" if hide and equals else word)
        hide = hide and not equals
    return out
