"""A page's seal: a digest of the whole file inside it, by which any later change of it is seen.

It finds what was touched up, cut or garbled on its way. It is no signature: who writes pages can write a seal as well.
"""

from __future__ import annotations

import hashlib
import re

UNSEALED = "0" * 64  # stands in the template, and in what is digested, where the seal goes
_TAG = re.compile(r'(<meta name="seal" content=")([0-9a-f]{64})(">)')


def sealed(page: str) -> str:
    """The page with its seal in the place that its template keeps for it."""
    return _TAG.sub(rf"\g<1>{_digest(page)}\g<3>", page, count=1)


def broken_seal(page: str) -> list[str]:
    """What the seal of a page says against it, in at most one line.

    Args:
        page: text of the file; ends of lines may be those of another system.
    """
    found = _TAG.search(page)
    if found is None:
        return ["no seal: not written by this program, or by an older version of it"]
    if found[2] != _digest(page):
        return ["not as it was written: something in the file was changed since, or lost"]
    return []


def _digest(page: str) -> str:
    """SHA-256 (FIPS 180-4), in hexadecimal, of the page without its seal."""
    text = _TAG.sub(rf"\g<1>{UNSEALED}\g<3>", page, count=1).replace("\r\n", "\n").replace("\r", "\n")
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
