"""Questions about paths that a person wrote: an odd one (too long, no permission, ``~nobody``) is just not there."""

from __future__ import annotations

from pathlib import Path


def is_file(path: Path) -> bool:
    """Whether it is a regular file; a pipe or a device is not, since reading it may never end."""
    try:
        return path.is_file()
    except OSError:
        return False


def is_folder(path: Path) -> bool:
    """Whether it is a folder."""
    try:
        return path.is_dir()
    except OSError:
        return False


def located(path: Path, folder: Path) -> Path:
    """The path with ``~`` replaced, and taken from ``folder`` if it is relative."""
    try:
        return folder / path.expanduser()
    except RuntimeError:
        return folder / path
