"""The runs of a root: listed and deleted without reading their tables."""

from __future__ import annotations

import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd

from workbench.errors import StoreError, WorkbenchError
from workbench.store.folder import GOING, default_root, disk_error, run_folder
from workbench.store.meta import META, duration_of, read_meta, short, status_of

_LISTED = ["id", "created", "label", "scenario", "setting", "status", "duration_s", "size_bytes"]


def list_runs(root: Path | str | None = None) -> pd.DataFrame:
    """Return a row for each run in ``root``, oldest first; one whose ``run.json`` is damaged has that as its status."""
    root = default_root() if root is None else Path(root)
    rows = []
    for path in sorted(root.glob(f"*/{META}")):
        folder = path.parent
        if folder.name.startswith(GOING) or folder.is_symlink():
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
    going = folder.with_name(f"{GOING}{secrets.token_hex(4)}")
    try:
        folder.rename(going)  # from here on nobody takes it for a run
        shutil.rmtree(going)
    except OSError as error:
        raise disk_error("cannot delete", folder, error) from None
    for leftover in folder.parent.glob(f"{GOING}*"):  # of a delete that was cut short
        shutil.rmtree(leftover, ignore_errors=True)


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            total += path.lstat().st_size
    return total
