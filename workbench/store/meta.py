"""``run.json``: what is known of a run beside its tables, as plain data."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pydantic import BaseModel

from workbench.errors import RunNotFoundError, StoreError
from workbench.i18n import phrase
from workbench.json_file import read_json
from workbench.printable import printable_data
from workbench.redact import redact
from workbench.store import owner
from workbench.store.shape import fault
from workbench.store.streams import SUFFIX
from workbench.trace import SCHEMA_VERSION
from workbench.whole_file import draft_of

META = "run.json"


def read_meta(folder: Path) -> dict[str, Any]:
    """Read ``run.json``.

    Raises:
        RunNotFoundError: the folder is not there, or not a run.
        StoreError: the file is damaged, cannot be read, or is of a newer version.
    """
    what, fix = phrase("run folder"), phrase("see `workbench runs list`, or give the folder that holds run.json")
    if not folder.is_dir():
        raise RunNotFoundError(what, folder, phrase("a folder that is there"), fix)
    path = folder / META
    try:
        meta = read_json(path, strict=True)
    except FileNotFoundError:
        raise RunNotFoundError(what, folder, phrase("a folder with run.json in it"), fix) from None
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
    kept: dict[str, Any] = printable_data(meta)  # written by another tool, or another version of ours
    return kept | {"id": folder.resolve().name}


def write_meta(folder: Path, meta: Mapping[str, Any]) -> None:
    """Replace ``run.json`` in one go: a reader sees the old or the new one.

    Raises:
        OSError: the folder is full or read-only; the old file is still there.
    """
    text = json.dumps(printable_data(redact(plain(meta))), indent=1, ensure_ascii=False, allow_nan=False)
    with draft_of(folder / META, durable=True) as draft:
        draft.write_text(text, encoding="utf-8")


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
