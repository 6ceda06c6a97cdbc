"""Run folders: their names and root, ``run.json``, and what can be done to a run without reading its tables."""

from __future__ import annotations

import errno
import json
import math
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import BaseModel

from workbench.errors import RunNotFoundError, StoreError, WorkbenchError
from workbench.json_file import read_json
from workbench.redact import redact
from workbench.store import owner
from workbench.store.shape import fault
from workbench.store.streams import SUFFIX
from workbench.trace import SCHEMA_VERSION

META = "run.json"
_TRIAL_BYTES = 1 << 18  # a short run's worth
_GOING = ".going-"  # prefix of a folder that is being deleted
_LISTED = ["id", "created", "label", "scenario", "setting", "status", "duration_s", "size_bytes"]


def default_root() -> Path:
    """Where runs are kept: the environment variable ``WORKBENCH_RUNS``, else ``runs`` in the current folder."""
    return Path(os.environ.get("WORKBENCH_RUNS") or "runs")


def handed_over(folder: Path | str) -> Path:
    """A run folder as it was given; one of ``data/runs`` that is not here is taken from the checkout.

    So a notebook finds the recorded runs that come with the workbench from whatever folder it runs in.
    """
    folder = Path(folder).expanduser()
    if not folder.is_absolute() and folder.parts[:2] == ("data", "runs") and not (folder / META).is_file():
        return Path(__file__).resolve().parents[2] / folder
    return folder


def prepare_root(root: Path | str | None = None) -> Path:
    """Make the folder that runs go into and try whether it can be written; worth a look before an engine is started.

    Raises:
        StoreError: it cannot be made or written, or the disk is full.
    """
    root = default_root() if root is None else Path(root)
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=root, prefix=".trial-") as trial:
            trial.write(b"\0" * _TRIAL_BYTES)
            trial.flush()
    except OSError as error:
        raise disk_error("cannot write to", root, error) from None
    return root


def new_run_folder(root: Path | str | None = None, name: str = "run") -> Path:
    """Make an empty folder for a run, readable by its owner only.

    Folders sort by time: ``20260131-175959-123-name``. Spaces and signs in ``name`` become dashes, so that it is
    one folder's name whatever it was; beyond 60 characters or 180 bytes it is cut.

    Raises:
        StoreError: the folder cannot be made.
    """
    root = default_root() if root is None else Path(root)
    slug = re.sub(r"[^\w.-]+", "-", name)[:60].encode()[:180].decode(errors="ignore").strip(".-") or "run"
    try:
        root.mkdir(parents=True, exist_ok=True)
        while True:
            now = datetime.now(UTC)
            folder = root / f"{now:%Y%m%d-%H%M%S}-{now.microsecond // 1000:03d}-{slug}"
            try:
                folder.mkdir(mode=0o700)
            except FileExistsError:
                time.sleep(0.001)
            else:
                return folder.resolve()
    except OSError as error:
        raise disk_error("cannot make a run folder in", root, error) from None


def run_folder(root: Path | str | None, run: str) -> Path:
    """Return the folder of the run with id ``run``, which lies directly in ``root``.

    Raises:
        RunNotFoundError: there is none, or ``run`` points elsewhere.
    """
    root = (default_root() if root is None else Path(root)).resolve()
    folder = root / run
    try:
        inside = run not in ("", ".", "..") and folder.parent == root and not folder.is_symlink()
        there = inside and not run.startswith(_GOING) and (folder / META).is_file()
    except (OSError, ValueError):  # too long, a NUL, half a character: no name of a file
        there = False
    if not there:
        raise RunNotFoundError("run", run, f"the id of a run in {root}", "see `workbench runs list`")
    return folder


def read_meta(folder: Path) -> dict[str, Any]:
    """Read ``run.json``.

    Raises:
        RunNotFoundError: the folder is not there, or not a run.
        StoreError: the file is damaged, cannot be read, or is of a newer version.
    """
    fix = "see `workbench runs list`, or give the folder that holds run.json"
    if not folder.is_dir():
        raise RunNotFoundError("run folder", folder, "a folder that is there", fix)
    path = folder / META
    try:
        meta = read_json(path, strict=True)
    except FileNotFoundError:
        raise RunNotFoundError("run folder", folder, "a folder with run.json in it", fix) from None
    except ValueError:
        meta = None
    except OSError as error:
        raise StoreError(f"cannot read {path}: {error.strerror}; check its permissions") from None
    version = meta.get("schema") if isinstance(meta, dict) else None
    if type(version) is int and SCHEMA_VERSION < version < 2**31:
        raise StoreError(
            f"{path}: written with schema {version}, this workbench reads up to {SCHEMA_VERSION}; update the workbench"
        )
    wrong = fault(meta)
    if wrong is not None:
        raise StoreError(
            f"{path}: damaged, expected what a run leaves there ({wrong}); delete the run or restore the file"
        )
    kept: dict[str, Any] = meta
    return kept | {"id": folder.resolve().name}


def write_meta(folder: Path, meta: Mapping[str, Any]) -> None:
    """Replace ``run.json`` in one go: a reader sees the old or the new one.

    Raises:
        OSError: the folder is full or read-only; the old file is still there.
    """
    temporary = folder / f".{META}.{secrets.token_hex(4)}.tmp"
    text = json.dumps(redact(plain(meta)), indent=1, ensure_ascii=False, allow_nan=False)
    try:
        with temporary.open("x", encoding="utf-8") as file:
            temporary.chmod(0o600)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(folder / META)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise


def status_of(folder: Path, meta: Mapping[str, Any]) -> str:
    """Return the run's status now: one that says running but whose writer is gone was interrupted."""
    writer = meta.get("writer")
    if meta["status"] == "running" and not (isinstance(writer, dict) and owner.is_alive(folder, writer)):
        return "interrupted"
    return str(meta["status"])


def duration_of(folder: Path, meta: Mapping[str, Any]) -> float | None:
    """Seconds from the run's start to its end; without an end, to the last rows that reached the disk."""
    if isinstance(meta.get("duration_s"), int | float):
        return float(meta["duration_s"])
    created = pd.to_datetime(str(meta.get("created")), utc=True, errors="coerce")
    last = max((path.stat().st_mtime for path in folder.glob(f"*{SUFFIX}")), default=math.nan)
    if pd.isna(created) or math.isnan(last):
        return None
    return max(0.0, last - float(created.timestamp()))


def list_runs(root: Path | str | None = None) -> pd.DataFrame:
    """Return a row for each run in ``root``, oldest first; one whose ``run.json`` is damaged has that as its status."""
    root = default_root() if root is None else Path(root)
    rows = []
    for path in sorted(root.glob(f"*/{META}")):
        folder = path.parent
        if folder.name.startswith(_GOING) or folder.is_symlink():
            continue
        row: dict[str, Any] = {"id": folder.name}
        try:
            meta = read_meta(folder)
            row |= {name: short(meta.get(name)) for name in ("created", "label", "scenario", "setting")}
            row |= {"status": status_of(folder, meta), "duration_s": duration_of(folder, meta)}
        except (WorkbenchError, OSError):
            row["status"] = "damaged"
        row["size_bytes"] = _size(folder)
        rows.append(row)
    frame = pd.DataFrame(rows, columns=_LISTED)
    frame["created"] = pd.to_datetime(frame["created"], utc=True, errors="coerce", format="ISO8601")
    return frame.astype({"duration_s": "float64", "size_bytes": "int64"})


def delete_run(root: Path | str | None, run: str) -> None:
    """Delete the run with id ``run`` from ``root``.

    Raises:
        RunNotFoundError: there is none, or ``run`` points elsewhere.
        StoreError: it is still running, or cannot be removed.
    """
    folder = run_folder(root, run)
    try:
        running = status_of(folder, read_meta(folder)) == "running"
    except StoreError:
        running = False  # damaged
    if running:
        raise StoreError(f"run {run}: still running, expected one that ended; stop it first")
    going = folder.with_name(f"{_GOING}{secrets.token_hex(4)}")
    try:
        folder.rename(going)  # from here on nobody takes it for a run
        shutil.rmtree(going)
    except OSError as error:
        raise disk_error("cannot delete", folder, error) from None
    for leftover in folder.parent.glob(f"{_GOING}*"):  # of a delete that was cut short
        shutil.rmtree(leftover, ignore_errors=True)


def disk_error(what: str, path: Path, error: BaseException) -> StoreError:
    """One line for a disk that refused: what, where, why, how much is free, and what to do."""
    near = path
    while not near.exists() and near != near.parent:
        near = near.parent
    try:
        free = f"{shutil.disk_usage(near).free / 2**20:,.0f} MiB free"
    except OSError:
        free = "free space unknown"
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    fix = "free some space there" if full else "make it writable"
    reason = (isinstance(error, OSError) and error.strerror) or " ".join(str(error).split()) or type(error).__name__
    return StoreError(f"{what} {path}: {reason} ({free}); {fix}, or choose another folder")


def plain(value: Any) -> Any:
    """Turn metadata into what JSON can hold; NaN and infinity become null."""
    if isinstance(value, BaseModel):
        return plain(value.model_dump(mode="json", by_alias=True))
    if isinstance(value, Mapping):
        return {plain(str(key)): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int):
        return value
    return str(value).encode("utf-8", "replace").decode()  # JSON can say half a character that no file can hold


def short(value: Any) -> str | None:
    """A metadata value as one cell of a table: a mapping by its name, or as ``key=value`` pairs."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        named = value.get("name")
        return named if isinstance(named, str) else " ".join(f"{key}={item}" for key, item in value.items())
    return str(value)


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.lstat().st_size
    return total
