"""What takes seconds to make and is always the same, such as the page's JavaScript, kept in the user's cache folder."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import version

import vl_convert

from workbench.models.cache import cache_root
from workbench.ui.charts.theme import VEGA_LITE
from workbench.whole_file import draft_of

_OLD_S = 90 * 86400.0  # kept that long without being read


@cache
def bundle(script: str) -> str:
    """One ES module with Vega, Vega-Lite and Vega-Embed before this script; nothing is fetched."""
    return kept(f"bundle {script}", lambda: str(vl_convert.javascript_bundle(script, vl_version=VEGA_LITE)))


def compiled(spec: str) -> str:
    """Vega-Lite as Vega, both as JSON: what a page would do at each load, done once."""
    return kept(f"vega {spec}", lambda: json.dumps(vl_convert.vegalite_to_vega(spec, vl_version=VEGA_LITE)))


def kept(made_from: str, make: Callable[[], str]) -> str:
    """The text that ``make`` gives, from the cache folder where it is there.

    Args:
        made_from: all that it depends on, but for the versions of vl-convert and Vega-Lite.
        make: makes it.
    """
    key = "\n".join([version("vl-convert-python"), VEGA_LITE, made_from])
    path = cache_root().parent / "pages" / hashlib.sha256(key.encode()).hexdigest()
    with suppress(OSError, UnicodeDecodeError):
        text = path.read_text(encoding="utf-8")
        body, _, check = text.rpartition("\n")
        if check == _digest(body):  # whole
            os.utime(path)
            return body
    made = make()
    with suppress(OSError):  # a full disk: made again the next time
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.iterdir():
            if old.stat().st_mtime < time.time() - _OLD_S:
                old.unlink()
        with draft_of(path) as draft:
            draft.write_text(f"{made}\n{_digest(made)}", encoding="utf-8")
    return made


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
