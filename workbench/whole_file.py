"""Files that are there whole or not at all: written beside their place, and put there in one go."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def draft_of(path: Path, *, mode: int = 0o600, durable: bool = False) -> Iterator[Path]:
    """An empty file to write to, which then takes the place of ``path``; after an error it is gone.

    A reader sees the old file or the new one, and nobody else can read the draft.

    Args:
        path: in a folder that is there.
        mode: of the file, once it is in place.
        durable: wait until the content is on the disk, so that a crash of the machine leaves no empty file.

    Raises:
        OSError: the folder is full or read-only; the old file is still there.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    os.close(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    try:
        yield draft
        if durable:
            with draft.open("rb") as file:
                os.fsync(file.fileno())
        draft.chmod(mode)
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
