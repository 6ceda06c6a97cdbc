"""A run folder as bytes and back, for its way home from another machine. Names are checked, nothing is unpickled."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from workbench.errors import StoreError
from workbench.store.folder import disk_error
from workbench.store.meta import META

MOST_BYTES = 1 << 30  # of one run; a step with 256 requests is some 10 KB
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")  # one flat file: no folder, no dot file, no way up


def pack(folder: Path) -> dict[str, bytes]:
    """Files of a run folder by name; only regular files that lie directly in it.

    Raises:
        StoreError: they are too large, or cannot be read.
    """
    files: dict[str, bytes] = {}
    size = 0
    for path in sorted(folder.iterdir()):
        if path.is_symlink() or not path.is_file() or not _NAME.fullmatch(path.name):
            continue
        size += path.stat().st_size
        if size > MOST_BYTES:
            raise StoreError(f"run {folder.name}: more than {MOST_BYTES >> 20:,} MiB; play a shorter load")
        try:
            files[path.name] = path.read_bytes()
        except OSError as error:
            raise disk_error("cannot read", path, error) from None
    return files


def unpack(files: Mapping[str, bytes], folder: Path) -> None:
    """Write what :func:`pack` took into an empty folder; every file lies directly in it, and none is replaced.

    ``run.json`` is written last: a folder that has it is whole.

    Raises:
        StoreError: a name leads elsewhere, something is not bytes, ``run.json`` is not JSON, it is too large, or it
            cannot be written.
    """
    for name, data in files.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name) or not isinstance(data, bytes):
            raise StoreError(f"run from a worker: got the file {name!r:.80}, expected a plain name and bytes; not kept")
    if sum(map(len, files.values())) > MOST_BYTES:
        raise StoreError(f"run from a worker: more than {MOST_BYTES >> 20:,} MiB, not kept; play a shorter load")
    try:
        json.loads(files[META])
    except (KeyError, ValueError, RecursionError):
        raise StoreError(f"run from a worker: got no {META} that can be read, expected one; not kept") from None
    try:
        for name in sorted(files, key=lambda name: name == META):
            with (folder / name).open("xb") as file:
                (folder / name).chmod(0o600)
                file.write(files[name])
    except OSError as error:
        raise disk_error("cannot write a run to", folder, error) from None
