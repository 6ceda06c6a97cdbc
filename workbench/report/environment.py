"""What a reader needs to judge a run and to repeat it: machine, versions, command. Secrets never get here."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.i18n import marked, translate
from workbench.redact import redact
from workbench.store.folder import plain

_LONG = 100  # characters; a longer value stands on lines of its own


@dataclass(frozen=True)
class Section:
    """A heading with name and value pairs."""

    heading: str
    items: list[tuple[str, str]]


def sections(environment: Mapping[str, Any]) -> list[Section]:
    """Lay out nested metadata: plain values under "Run", each mapping under its own name.

    Values of names that sound secret, and of such flags in a command line, are hidden.
    """
    data = redact(plain(environment))
    loose = [(_name(key), _text(value)) for key, value in data.items() if not isinstance(value, dict)]
    found = [Section(marked("Run"), loose)] if loose else []
    for key, value in data.items():
        if isinstance(value, dict) and value:
            found.append(Section(_name(key), [(_name(k), _text(v)) for k, v in value.items()]))
    return found


def is_long(text: str) -> bool:
    """Whether a value needs lines of its own."""
    return len(text) > _LONG or "\n" in text


def _name(key: str) -> str:
    return {"argv": marked("engine command"), "slo": "SLO"}.get(key, key.replace("_", " "))


def _text(value: Any) -> str:
    if value is None:
        return translate("not set")
    if isinstance(value, list | dict) and not value:
        return "–"
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return shlex.join(value) if any(item.startswith("-") for item in value) else ", ".join(value)
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, indent=1)
    return str(value)
