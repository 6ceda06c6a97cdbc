"""JSON files that come from outside: regular files of bounded size, and two kinds of error for whatever is wrong."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

MOST_BYTES = 64 << 20
_SURROGATE = rb"\ud"


def read_json(path: Path | str, most: int = MOST_BYTES, *, strict: bool = False) -> Any:
    """What a JSON file holds.

    Args:
        path: the file; a pipe or a device is refused, since reading it may never end.
        most: bytes that it may have.
        strict: refuse ``NaN`` and ``Infinity``, which are Python's and not JSON's.

    Raises:
        OSError: it is not there, is no regular file, or cannot be read.
        ValueError: it is too large, not UTF-8, not JSON, or nested too deeply.
    """
    return parse_json(read_bytes(path, most), strict=strict)


def parse_json(data: bytes | str, *, strict: bool = False) -> Any:
    """Plain data from JSON; half a character (a lone surrogate), which no file or screen can hold, becomes ``?``.

    Raises:
        ValueError: not UTF-8, not JSON, or nested too deeply.
    """
    try:
        found = json.loads(data, parse_constant=_no_number if strict else None)
        if _SURROGATE in (data if isinstance(data, bytes) else data.encode("utf-8", "replace")).lower():
            found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return found


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def read_bytes(path: Path | str, most: int = MOST_BYTES) -> bytes:
    """The bytes of a regular file.

    Raises:
        OSError: it is not there, is no regular file, or cannot be read.
        ValueError: it has more than ``most`` bytes, or its name has a NUL in it.
    """
    # A pipe would keep even the opening waiting, unless told not to.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        _expect_regular(found)
        size = min(found.st_size, most)
        data = file.read(size + 1)
    if found.st_size > most or len(data) > most:
        raise ValueError(f"more than {most:,} bytes")
    return data


def regular(path: Path) -> Path:
    """The same path, for those who open it themselves.

    Raises:
        OSError: it is not there, or no regular file.
    """
    _expect_regular(path.stat())
    return path


def _expect_regular(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "no regular file")
