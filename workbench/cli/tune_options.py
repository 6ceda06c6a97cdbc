"""What ``workbench tune`` takes as ``name=value`` texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from workbench.cli.options import start_up_fields
from workbench.errors import InputError


def limits_of(texts: Sequence[str] | None) -> dict[str, float]:
    """Limits from ``name=value`` texts.

    Raises:
        InputError: one is not of that form, or is given twice.
    """
    limits: dict[str, float] = {}
    for text in texts or ():
        name, sign, value = (part.strip() for part in text.partition("="))
        if not sign or not name or not value:
            raise InputError("--limit", text, "name=value", "write it like --limit gap_p99_ms=200")
        if name in limits:
            raise InputError(f"--limit {name}", f"{limits[name]:g} and {value}", "each limit once", "leave one out")
        try:
            limits[name] = float(value)
        except ValueError:
            raise InputError(f"--limit {name}", value, "a number", "write it like --limit gap_p99_ms=200") from None
    return limits


def restarts_of(texts: Sequence[str] | None) -> dict[str, list[Any]]:
    """Values of start-up fields from ``name=a,b`` texts.

    Raises:
        InputError: one is not of that form, or is given twice.
    """
    fields: dict[str, list[Any]] = {}
    for text in texts or ():
        name, sign, values = (part.strip() for part in text.partition("="))
        if not sign or not name or not values:
            raise InputError("--restart", text, "name=value", "write it like --restart max_num_seqs=16,32")
        if name in fields:
            raise InputError(f"--restart {name}", values, "each field once", "put its values behind one --restart")
        fields[name] = [
            value for one in values.split(",") for value in start_up_fields([f"{name}={one.strip()}"]).values()
        ]
    return fields
