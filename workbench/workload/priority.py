"""How urgent a request is: the API's own ``priority``, of which the first three numbers are classes with names."""

from __future__ import annotations

import difflib
from typing import Annotated, Any

from pydantic import BeforeValidator

VIP, NORMAL, OFFLINE = 0, 1, 2
CLASSES = {"vip": VIP, "normal": NORMAL, "offline": OFFLINE}
LARGEST = 1000

_EXPECTED = f"vip, normal, offline (which may also be written 0, 1, 2) or a larger whole number up to {LARGEST}"


def number_of(value: Any) -> int:
    """The API's number for what a person wrote: a number, or the name of a class in any case.

    Raises:
        ValueError: it is neither; with what was expected.
    """
    if isinstance(value, str) and value.strip().casefold() in CLASSES:
        return CLASSES[value.strip().casefold()]
    if isinstance(value, bool) or not isinstance(value, int) or not VIP <= value <= LARGEST:
        near = difflib.get_close_matches(value.casefold(), CLASSES, 1) if isinstance(value, str) else []
        raise ValueError(_EXPECTED + (f" (did you mean {near[0]}?)" if near else ""))
    return value


Priority = Annotated[int, BeforeValidator(number_of)]
