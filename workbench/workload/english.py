"""Natural-looking English text from a small grammar of our own, for prompts that need no corpus."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

_LISTS = {
    "noun": """answer archive basket bridge budget captain castle chapter city cloud coast committee cottage craft crowd
        dealer desert diary doctor editor engine evening factory farmer festival field forest friend garden glacier
        harbour history hospital island journey kitchen ladder language lantern letter library machine market meadow
        merchant meeting mirror moment morning mountain museum neighbour notebook novel ocean office orchard painter
        parcel picture pilot planet player promise question railway recipe report river school season shadow sister
        station storm story street student summer teacher theatre ticket tower traveller valley village violin visitor
        wagon weather widow window winter worker writer""",
    "adjective": """ancient bitter brave bright broken busy careful cheerful clever common curious distant early eastern
        empty faithful famous foreign gentle golden hidden honest hungry large lively lonely lucky modern narrow new
        northern old patient plain polite proud quiet rapid rare recent rough sharp silent simple slow small southern
        steady strange sudden tall thirsty tired useful usual warm weak western wide wise wooden young""",
    "verb": """answered asked borrowed bought carried changed chose cleaned copied counted covered crossed described
        discovered drew expected explained feared finished followed forgot found gathered heard imagined improved
        invited joined kept learned left liked lost measured mentioned moved needed noticed opened ordered painted
        passed planned praised prepared promised read remembered repaired saved sent shared showed sold studied
        taught trusted visited watched welcomed wrote""",
    "opening": """Afterwards Besides Clearly Curiously Eventually Finally First Fortunately Gradually Instead Later
        Meanwhile Nevertheless Often Perhaps Quietly Recently Sometimes Soon Suddenly Then Today Tomorrow Usually
        Yesterday""",
}
_PLACES = (
    "at the edge of town",
    "behind the old mill",
    "before the rain began",
    "for the third time",
    "in the middle of the night",
    "near the railway bridge",
    "on the way to the coast",
    "under the kitchen table",
    "with great care",
    "without saying a word",
    "after a long winter",
    "as everybody had expected",
)
_WORDS: dict[str, Sequence[str]] = {kind: words.split() for kind, words in _LISTS.items()} | {"place": _PLACES}

_SHAPES = (
    "The {adjective} {noun} {verb} the {noun} {place}.",
    "{opening}, a {adjective} {noun} {verb} every {noun} and {verb} the {adjective} {noun}.",
    "Nobody {verb} the {noun}, but the {adjective} {noun} {verb} it {place}.",
    "{opening} the {noun} {verb} {number} pages about the {adjective} {noun}.",
    "When the {noun} {verb} the {adjective} {noun}, the {noun} {verb} {place}.",
    "In the year {number}, the {noun} of the {adjective} {noun} {verb} a {noun} {place}.",
    "{opening} they {verb} the {noun}, which the {noun} {verb} {place}.",
    "Why had the {adjective} {noun} never {verb} the {noun}?",
)

_BEFORE_VOWEL = re.compile(r"\b([Aa]) (?=[aeio]|u(?!s))")


def sentences(rng: np.random.Generator, n: int) -> list[str]:
    """Write ``n`` sentences, each with a space after it."""
    dice = rng.integers(0, 1 << 30, size=(n, 12)).tolist()
    return [_sentence(row) for row in dice]


def _sentence(dice: list[int]) -> str:
    """One sentence, each choice made by the next number."""
    shape, *rolls = dice
    words = _SHAPES[shape % len(_SHAPES)].split("{")
    parts = [words[0]]
    for roll, piece in zip(rolls, words[1:], strict=False):
        kind, _, rest = piece.partition("}")
        parts.append(str(roll % 2000) if kind == "number" else _WORDS[kind][roll % len(_WORDS[kind])])
        parts.append(rest)
    return _BEFORE_VOWEL.sub(r"\1n ", "".join(parts)) + " "
