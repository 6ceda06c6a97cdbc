"""What a reader needs to judge a run and to repeat it: machine, versions, command. Secrets never get here."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from workbench.i18n import marked, translate
from workbench.origin import in_pieces
from workbench.redact import redact
from workbench.store.meta import plain

_LONG = 100  # characters; a longer value stands on lines of its own
_NAMES = {"argv": marked("engine command"), "slo": "SLO"}
# What people read of the rest; a name that is not here is that of a field, a package or a flag, and stays.
_TOLD = (
    *(marked("label"), marked("seed"), marked("workload"), marked("machine"), marked("versions"), marked("engine")),
    *(
        marked("compute"),
        marked("scenario"),
        marked("question"),
        marked("setting"),
        marked("created"),
        marked("status"),
    ),
    *(marked("reason"), marked("ended"), marked("duration s"), marked("recorded"), marked("dropped"), marked("title")),
    *(marked("processor"), marked("cores"), marked("usable cores"), marked("memory bytes"), marked("model origin")),
    *(marked("memory split"), marked("architecture"), marked("peak"), marked("bandwidth"), marked("device")),
    *(marked("missing"), marked("serve command"), marked("resolved"), marked("simulated facts"), marked("simulated")),
    *(
        marked("saved"),
        marked("saved from"),
        marked("torn"),
        marked("traces"),
        marked("salt"),
        marked("sampler errors"),
    ),
    *(marked("probe faults"), marked("probe dropped"), marked("decode floor ms"), marked("host bytes per s")),
)
_WORDS = ("label", "status", "recorded")  # whose values are words of ours


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
    loose = [(_name(key), _worded(key, value)) for key, value in data.items() if not isinstance(value, dict)]
    found = [Section(marked("Run"), loose)] if loose else []
    for key, value in data.items():
        if isinstance(value, dict) and value:
            found.append(Section(_name(key), [(_name(k), _worded(k, v)) for k, v in value.items()]))
    return found


def is_long(text: str) -> bool:
    """Whether a value needs lines of its own."""
    return len(text) > _LONG or "\n" in text


def _name(key: str) -> str:
    name = _NAMES.get(key, key.replace("_", " "))
    return translate(name) if key in _NAMES or name in _TOLD else name


def _worded(key: str, value: Any) -> str:
    if not isinstance(value, str):
        return _text(value)
    return in_pieces(value) if key in _WORDS else translate(value) if key == "question" else value


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
