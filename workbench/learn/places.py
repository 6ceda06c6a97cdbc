"""A place in a list, as people count and type it."""

from __future__ import annotations

from workbench.errors import InputError
from workbench.i18n import phrase


def place_of(what: str, given: object, count: int) -> int:
    """A place from 1, from a whole number or a text that is one.

    Raises:
        InputError: it is none, or there are not as many.
    """
    text = str(given).strip()
    place = int(text) if text.isdecimal() and len(text) < 9 else 0
    if not 1 <= place <= count:
        raise InputError(what, given, phrase("1 to {count}", count=count), phrase("choose one of these"))
    return place
