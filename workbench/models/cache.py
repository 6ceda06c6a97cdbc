"""Folders that are made once and kept: locked, all or nothing, checksummed.

A folder is made under a temporary name and renamed when it is whole, so that a reader never sees half of one and an
interruption leaves only a temporary folder, which the next maker removes. Its manifest holds what it was made from
and, for each file, size, time and SHA-256.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import platformdirs

from workbench.errors import ModelError
from workbench.i18n import phrase
from workbench.json_file import read_json
from workbench.models.child import Progress
from workbench.whole_file import draft_of

MANIFEST = "workbench-manifest.json"
_ABSENT = "not there"
_FIX = "free some space or point the environment variable WORKBENCH_CACHE at another folder"


def cache_root() -> Path:
    """Return the folder for models: ``WORKBENCH_CACHE``, else the user's cache folder."""
    chosen = os.environ.get("WORKBENCH_CACHE", "").strip()
    base = Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("tuning-workbench"))
    return base.absolute() / "models"


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def faults(folder: Path, recipe: Mapping[str, Any], *, full: bool = False) -> list[str]:
    """Say what is wrong with a folder; empty when it can be used.

    Sizes and times are compared; contents too with ``full``, and whenever a size or a time differs.
    """
    try:
        manifest = read_json(folder / MANIFEST)
        files = {str(name): dict(entry) for name, entry in manifest["files"].items()}
        made_from = manifest["recipe"]
    except FileNotFoundError:
        return ["its manifest is missing"] if folder.is_dir() else [_ABSENT]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return ["its manifest cannot be read"]
    if made_from != json.loads(json.dumps(recipe)):
        return ["it was made from another source or by another version"]
    if not full and all(_looks_same(folder / name, entry) for name, entry in files.items()):
        return []
    found = [fault for name, entry in files.items() if (fault := _fault(folder / name, entry))]
    if not found:  # copied or touched: the contents are right, so note the new times
        with suppress(OSError):
            manifest["files"] = {name: _entry(folder / name, entry["sha256"]) for name, entry in files.items()}
            _write_manifest(folder, manifest)
    return found


def obtain(
    folder: Path,
    recipe: Mapping[str, Any],
    make: Callable[[Path, int | None], Mapping[str, Any]],
    *,
    space: int,
    progress: Progress,
    verify: bool = False,
) -> Path:
    """Return ``folder``, made first where it is absent, damaged or made from something else.

    Args:
        folder: where it belongs.
        recipe: what it is made from; a folder with another recipe is made anew.
        make: fills an empty folder; gets the lock's descriptor, for children to hold; returns notes for the manifest.
        space: bytes that making it takes.
        progress: told what happens, a line at a time.
        verify: compare the contents of a folder that is there, not only sizes and times.

    Raises:
        ModelError: the cache cannot be written, or is full.
    """
    if not faults(folder, recipe, full=verify):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with _locked(folder, progress) as lock:
            found = faults(folder, recipe, full=verify)  # another process may have made it meanwhile
            if found:
                if found != [_ABSENT]:
                    progress(
                        phrase(
                            "{model} in the cache cannot be used ({why}): making it anew",
                            model=folder.name,
                            why="; ".join(found),
                        )
                    )
                _make(folder, recipe, make, space=space, lock=lock)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise ModelError("model cache", folder.parent, f"a folder that can be written ({reason})", _FIX) from None
    return folder


def _make(
    folder: Path,
    recipe: Mapping[str, Any],
    make: Callable[[Path, int | None], Mapping[str, Any]],
    *,
    space: int,
    lock: int | None,
) -> None:
    making, old = f".{folder.name}.making-", f".{folder.name}.old-"
    if lock is not None:
        for left in (*folder.parent.glob(making + "*"), *folder.parent.glob(old + "*")):
            shutil.rmtree(left, ignore_errors=True)
    free = shutil.disk_usage(folder.parent).free
    if free < space:
        raise ModelError("model cache", folder.parent, f"{space >> 20} MiB free (it has {free >> 20})", _FIX)
    temporary = Path(tempfile.mkdtemp(prefix=making, dir=folder.parent))
    try:
        notes = make(temporary, lock)
        _seal(temporary, recipe, notes)
        _put(temporary, folder, old)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _seal(folder: Path, recipe: Mapping[str, Any], notes: Mapping[str, Any]) -> None:
    files = {}
    for path in sorted(folder.iterdir()):
        with path.open("rb") as file:
            os.fsync(file.fileno())
        files[path.name] = _entry(path, sha256(path))
    _write_manifest(folder, {"recipe": recipe, "files": files, "notes": dict(notes)})


def _write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    with draft_of(folder / MANIFEST, durable=True) as draft:
        draft.write_text(json.dumps(manifest, indent=1), encoding="utf-8")


def _put(temporary: Path, folder: Path, old: str) -> None:
    """Rename ``temporary`` to ``folder``; a process that has the old one's files open keeps them."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    elif folder.exists():
        aside = Path(tempfile.mkdtemp(prefix=old, dir=folder.parent))
        folder.rename(aside / folder.name)
        temporary.rename(folder)
        shutil.rmtree(aside, ignore_errors=True)
        return
    temporary.rename(folder)


def _entry(path: Path, digest: str) -> dict[str, Any]:
    stat = path.stat()
    return {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, "sha256": digest}


def _looks_same(path: Path, entry: Mapping[str, Any]) -> bool:
    try:
        stat = path.stat()
    except OSError:
        return False
    return (stat.st_size, stat.st_mtime_ns) == (entry.get("size"), entry.get("mtime_ns"))


def _fault(path: Path, entry: Mapping[str, Any]) -> str | None:
    try:
        size = path.stat().st_size
        if size != entry.get("size"):
            return f"{path.name} has {size:,} bytes instead of {entry.get('size'):,}"
        return None if sha256(path) == entry.get("sha256") else f"{path.name} has other contents than when it was made"
    except FileNotFoundError:
        return f"{path.name} is missing"
    except OSError as error:
        return f"{path.name} cannot be read ({error.strerror})"


@contextmanager
def _locked(folder: Path, progress: Progress) -> Iterator[int | None]:
    """Hold the lock of ``folder``; yields its descriptor, None where the file system has no locks."""
    descriptor = os.open(folder.parent / f".{folder.name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        held = True
        told = False
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES, errno.EINTR):
                    held = False
                    break
            if not told:
                progress(phrase("another process is preparing {model}: waiting for it", model=folder.name))
                told = True
            time.sleep(0.2)
        yield descriptor if held else None
    finally:
        os.close(descriptor)
