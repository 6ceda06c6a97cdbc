"""From streams to Parquet: at the end of a run by its writer, after a crash by whoever opens the run first."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.store.folder import write_meta
from workbench.store.streams import SUFFIX, read_stream
from workbench.trace import TABLES, join_engine_stamps

RESERVE = ".reserve"  # space kept back so that the end of a run can be written to a full disk

KEYS = {"requests": "request", "steps": "step", "knobs": "revision"}
"""Tables in which several rows of one key are one row, told bit by bit."""

_ORDER = {
    "requests": "planned_s",
    "tokens": "client_s",
    "steps": "step",
    "batch": "step",
    "client": "t_s",
    "memory": "t_s",
    "server": "t_s",
    "knobs": "revision",
}


def read_streams(folder: Path) -> tuple[dict[str, pa.Table], list[str]]:
    """Read what a run has streamed so far.

    Returns:
        All tables as they were written, and the names of those whose stream ended in mid-batch.

    Raises:
        FileNotFoundError: a stream went away: somebody has just converted the run.
        OSError: a stream cannot be read.
    """
    tables, torn = {}, []
    there = {path.stem for path in folder.glob(f"*{SUFFIX}")}
    for name, schema in TABLES.items():
        tables[name] = schema.empty_table()
        if name in there:
            tables[name], whole = read_stream(folder / f"{name}{SUFFIX}", schema)
            if not whole:
                torn.append(name)
    return tables, torn


def finish(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Make streamed tables into those of a trace: merge partial rows, stamp tokens with their steps, sort."""
    out = {name: coalesce(table, KEYS[name]) if name in KEYS else table for name, table in tables.items()}
    out["tokens"] = join_engine_stamps(out["tokens"], out["batch"], out["steps"])
    return {name: _sort(table, _ORDER[name]) for name, table in out.items()}


def coalesce(table: pa.Table, key: str) -> pa.Table:
    """Merge rows of the same ``key``: in each column the last value that is not null wins.

    So a row may be written in parts, as they become known. A row without a key stands for itself.
    """
    codes = table[key].combine_chunks().dictionary_encode()
    code = np.array(codes.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)
    lone = code < 0
    kinds = len(codes.dictionary)
    code[lone] = kinds + np.arange(lone.sum())
    kinds += int(lone.sum())
    if kinds == table.num_rows:
        return table
    columns = []
    for column in table.columns:
        row = np.full(kinds, -1, dtype=np.int64)
        valid = np.flatnonzero(column.is_valid().to_numpy())
        np.maximum.at(row, code[valid], valid)
        columns.append(column.take(pa.array(row, mask=row < 0)))
    return pa.table(columns, schema=table.schema)


def publish(folder: Path, tables: Mapping[str, pa.Table], meta: Mapping[str, Any]) -> None:
    """Write finished tables as Parquet and make them the run's content.

    A crash at any point leaves the run readable: ``run.json`` says ``compacted`` only when every Parquet file is in
    place, and the streams go after that.

    Raises:
        OSError: the disk is full or read-only; the streams are still there and valid.
    """
    for name, table in tables.items():
        _write_parquet(folder / f"{name}.parquet", table)
    rows = {name: table.num_rows for name, table in tables.items()}
    write_meta(folder, {**meta, "compacted": True, "rows": rows})
    for path in [*folder.glob(f"*{SUFFIX}"), *folder.glob(".*.tmp"), folder / RESERVE]:
        with suppress(OSError):
            path.unlink()


def _write_parquet(path: Path, table: pa.Table) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    texts = [f.name for f in table.schema if pa.types.is_string(f.type)]
    try:
        pq.write_table(table, temporary, compression="zstd", use_dictionary=texts)
        with temporary.open("rb+") as file:
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(0o600)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _sort(table: pa.Table, by: str) -> pa.Table:
    """Sort by a numeric column, keeping the order of equals; nulls go last."""
    values = np.asarray(table[by].to_numpy(), dtype=np.float64)
    if not np.isnan(values).any() and bool((values[1:] >= values[:-1]).all()):
        return table
    return table.take(pa.array(np.argsort(values, kind="stable")))
