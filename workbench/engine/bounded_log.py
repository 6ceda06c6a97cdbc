"""An engine's log: its output on disk without secrets, in two files that never grow beyond their limit.

Standard library only, like the guard that writes it (:mod:`workbench.engine.guard`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from workbench.redact import Stripper

_LIMIT = 4 << 20  # bytes in engine.log before it moves to engine.log.1


class BoundedLog:
    """The engine's output on disk, at most two files of four MiB.

    Args:
        path: of the file.
        secrets: values that are not written: an engine may print the key that it was given.
    """

    def __init__(self, path: Path, secrets: Iterable[str] = ()) -> None:
        self._path, self._stripper = path, Stripper(secrets)
        self._file = path.open("ab", buffering=0)
        self._size = self._file.tell()

    def write(self, data: bytes) -> None:
        """Append; a full disk loses log lines, never the engine."""
        self._append(self._stripper.feed(data))

    def close(self) -> None:
        """Write what was held back as the possible beginning of a secret."""
        self._append(self._stripper.close())

    def _append(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            if self._size + len(data) > _LIMIT:
                self._path.replace(self._path.with_name(self._path.name + ".1"))
                full, self._file, self._size = self._file, self._path.open("ab", buffering=0), 0
                full.close()
            self._file.write(data)
            self._size += len(data)
