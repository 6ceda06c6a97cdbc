"""Folders for a while, which the next one to need one takes away should their owner have been killed."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from workbench.proc import started

_OWNED = re.compile(r"(\d+)-(\d+)-.*")


@contextmanager
def scratch(prefix: str, root: Path | None = None) -> Iterator[Path]:
    """A new folder, readable by its owner only; gone at the end.

    Args:
        prefix: of its name, which also holds the pid and the start time of its owner.
        root: where; by default the folder for temporary files.

    Raises:
        OSError: it cannot be made.
    """
    root = Path(tempfile.gettempdir()) if root is None else root
    _sweep(root, prefix)
    folder = Path(tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-{started(os.getpid())}-", dir=root))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _sweep(root: Path, prefix: str) -> None:
    """Take away folders of ours whose owner is gone."""
    for folder in root.glob(f"{prefix}*"):
        owner = _OWNED.fullmatch(folder.name.removeprefix(prefix))
        with contextlib.suppress(OSError):
            mine = folder.lstat().st_uid == os.getuid() and not folder.is_symlink()
            if owner and mine and started(int(owner[1])) != int(owner[2]):
                shutil.rmtree(folder, ignore_errors=True)
