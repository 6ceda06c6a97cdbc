"""Child processes that run a module of ours: where they find this package, and what is known of their end."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from pathlib import Path

_TAIL = 8192  # bytes of what a child wrote


def import_path(environment: Mapping[str, str] | None = None) -> str:
    """``PYTHONPATH`` of a child that imports the same workbench as its parent.

    Args:
        environment: of the child, so far; by default that of this process.
    """
    home = str(Path(__file__).resolve().parent.parent)
    given = (os.environ if environment is None else environment).get("PYTHONPATH")
    return os.pathsep.join(filter(None, [home, given]))


def killed_by(code: int | None) -> str | None:
    """The signal that ended a process, such as "SIGKILL"; None where it ended by itself, or has not."""
    return signal.Signals(-code).name if code is not None and code < 0 else None


def last_line(errors: int) -> str:
    """The last line with something in it that a child wrote to a file; empty where there is none.

    Args:
        errors: the open file's descriptor; where it stands does not change.

    Raises:
        OSError: it cannot be read.
    """
    size = os.fstat(errors).st_size
    tail = os.pread(errors, _TAIL, max(0, size - _TAIL)).decode(errors="replace")
    return next((line.strip() for line in reversed(tail.splitlines()) if line.strip()), "")
