"""Other people's words where people read them: nothing that moves a terminal's cursor or turns a line around."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Any

# C0 and C1 controls but tab and line feed; marks, embeddings, overrides and isolates of the bidirectional algorithm
# (Unicode Standard Annex 9), with which one text can look like another; line separators; halves of characters and
# codes that are none. In XML most of these cannot stand at all: what draws a chart as SVG ends the process over one.
_MOVES = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)

# What is not torn apart: a word, or one Han character, with the brackets that open before it and what closes behind it.
_PIECE = re.compile(r"\s*[（「『“]*(?:[^\s\u2e80-\uffef（“]+|[\u2e80-\uffef]|[（“])[，。、；：！？）」』”%]*")


def printable(text: str) -> str:
    """The text with a question mark in place of each such character; all scripts, emoji and joiners stay."""
    return _MOVES.sub("?", text)


def printable_data(value: Any, clean: Callable[[str], str] = printable) -> Any:
    """Plain data with every text and key in it so: dicts, lists, texts; all else stays as it is."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {printable_data(name, clean): printable_data(item, clean) for name, item in value.items()}
    return [printable_data(item, clean) for item in value] if isinstance(value, list) else value


def letters(text: str) -> int:
    """How many Latin letters are as wide; a Han character is two (Unicode's East Asian width)."""
    return sum(1 + (unicodedata.east_asian_width(letter) in "WF") for letter in text)


def in_lines(text: str, width: int) -> list[str]:
    """The text in lines of at most so many letters, broken at spaces and between Han characters.

    A word that is longer than a line has one for itself; punctuation stays with what it belongs to.

    Args:
        text: of one paragraph.
        width: as :func:`letters` counts it.
    """
    lines = [""]
    for piece in _PIECE.findall(text):
        if lines[-1] and letters(lines[-1] + piece) > width:
            lines.append("")
        lines[-1] += piece if lines[-1] else piece.lstrip()
    return [line for line in lines if line]
