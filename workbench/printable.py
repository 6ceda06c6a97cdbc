"""Other people's words where people read them: nothing that moves a terminal's cursor or turns a line around."""

from __future__ import annotations

import re

# C0 and C1 controls but tab and line feed; marks, embeddings, overrides and isolates of the bidirectional algorithm
# (Unicode Standard Annex 9), with which one text can look like another; line separators; halves of characters.
_MOVES = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str) -> str:
    """The text with a question mark in place of each such character; all scripts, emoji and joiners stay."""
    return _MOVES.sub("?", text)
