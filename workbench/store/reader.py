"""open_run: a trace from a run folder, whatever state the run was left in."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workbench.errors import StoreError
from workbench.json_file import regular
from workbench.store import owner
from workbench.store.compact import convert, finish, read_streams
from workbench.store.meta import duration_of, read_meta, status_of
from workbench.store.printed import printed
from workbench.store.streams import SUFFIX, Batches, conform
from workbench.trace import TABLES, Trace

# The column that says when the last thing of a table happened, in seconds from the run's zero.
_TIMES = {"tokens": "client_s", "steps": "end_s", "memory": "t_s", "client": "t_s", "server": "t_s"}


def open_run(folder: Path | str) -> Trace:
    """Load a run.

    A run that ended is read from Parquet. One left by a crash has the status ``interrupted``: it is converted to
    Parquet by whoever opens it first, or read in memory where the folder is read-only. One that is still being
    written is read as it is now, and not touched.

    Raises:
        RunNotFoundError: there is no such folder, or it is not a run.
        StoreError: the run is damaged, or written by a newer version.
    """
    folder = Path(folder)
    for _ in range(10):
        meta = read_meta(folder)
        try:
            if meta.get("compacted"):
                return _load(folder, meta)
            status = status_of(folder, meta)
            if status == "running":
                return _in_memory(folder, meta)
            return _recover(folder, meta, status)
        except FileNotFoundError:
            continue  # somebody finished the run between two looks
        except (OSError, pa.ArrowException, MemoryError) as error:
            why = " ".join(str(error).split())
            raise StoreError(f"cannot read the run {folder}: {why}; check its permissions, or delete it") from None
    raise StoreError(f"cannot read the run {folder}: its files come and go; try again when nothing writes to it")


def _load(folder: Path, meta: Mapping[str, Any]) -> Trace:
    tables = {}
    for name, schema in TABLES.items():
        path = folder / f"{name}.parquet"
        if name not in meta.get("rows", {}):  # an older version did not have this table
            tables[name] = schema.empty_table()
            continue
        try:
            tables[name] = conform(pq.ParquetFile(regular(path)).read(), schema)
            tables[name].validate(full=True)  # a text that is not UTF-8 would end in whoever looks at it
            tables[name] = printed(tables[name])
        except FileNotFoundError:
            raise StoreError(f"{path}: missing from the run, expected a Parquet file; delete the run") from None
        except (OSError, ValueError, pa.ArrowException, MemoryError) as error:
            why = " ".join(str(error).split())[:300]
            raise StoreError(f"{path}: damaged, expected a Parquet file ({why}); delete the run") from None
    return Trace(tables, dict(meta))


def _in_memory(folder: Path, meta: Mapping[str, Any]) -> Trace:
    tables, torn = read_streams(folder)
    return Trace({name: printed(table) for name, table in finish(tables).items()}, {**meta, "torn": torn})


def _seconds(folder: Path, meta: Mapping[str, Any]) -> dict[str, float]:
    """How long a run that was cut off had gone on, by its rows: dates are of the wall clock, which may have been set.

    Empty where no row says so, or where the rows are of virtual time.
    """
    if str(meta.get("label")).startswith("simulated"):
        return {}
    last = 0.0
    for name, column in _TIMES.items():
        path = folder / f"{name}{SUFFIX}"
        for piece in Batches(path, TABLES[name]) if path.exists() else ():
            end = pc.max(piece[column]).as_py()
            if end is not None and math.isfinite(end):
                last = max(last, float(end))
    return {"duration_s": round(last, 3)} if last > 0 else {}


def _recover(folder: Path, meta: Mapping[str, Any], status: str) -> Trace:
    with owner.locked(folder) as held:
        if held and (now := read_meta(folder)).get("compacted"):
            return _load(folder, now)
        reason = meta.get("reason") or ("the writer ended without closing the run" if status == "interrupted" else None)
        ended = {**meta, "status": status, "reason": reason, "duration_s": duration_of(folder, meta)}
        ended |= _seconds(folder, meta)
        if not held:
            return _in_memory(folder, ended)  # another process converts it right now
        try:
            convert(folder, ended)
        except OSError:
            return _in_memory(folder, ended)  # read-only or full
        return _load(folder, read_meta(folder))
