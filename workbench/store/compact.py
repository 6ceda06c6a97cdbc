"""From streams to Parquet: at the end of a run by its writer, after a crash by whoever opens the run first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workbench.engine_stamps import EngineStamps, join_engine_stamps
from workbench.store.in_order import in_order, sort
from workbench.store.meta import write_meta
from workbench.store.streams import SUFFIX, Batches, read_stream
from workbench.trace import TABLES
from workbench.whole_file import draft_of

RESERVE = ".reserve"  # space kept back so that the end of a run can be written to a full disk

KEYS = {"requests": "request", "steps": "step", "knobs": "revision"}
"""Tables in which several rows of one key are one row, told bit by bit."""

ORDER = {
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
    return {name: sort(table, ORDER[name]) for name, table in out.items()}


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


def convert(folder: Path, meta: Mapping[str, Any]) -> None:
    """Make the streams of a run its Parquet files, as :func:`publish` does, without holding the run in memory.

    Held are the requests, steps and knobs, 24 bytes of each row of a batch that made a token, and of the tables of
    single rows a piece.

    Raises:
        OSError: the disk is full or read-only; the streams are still there and valid.
    """
    streams = {path.stem: Batches(path, TABLES[path.stem]) for path in folder.glob(f"*{SUFFIX}") if path.stem in TABLES}
    tables = {name: _merged(streams.get(name, ()), name) for name in KEYS}
    stamps = EngineStamps(streams.get("batch", ()), tables["steps"])
    rows = {}
    for name, schema in TABLES.items():
        pieces = [tables[name]] if name in KEYS else in_order(streams.get(name, ()), ORDER[name])
        stamped = map(stamps.on, pieces) if name == "tokens" else pieces
        rows[name] = _write_parquet(folder / f"{name}.parquet", schema, stamped)
    torn = [name for name in TABLES if name in streams and not streams[name].whole]
    _settle(folder, {**meta, "torn": torn}, rows)


def _merged(batches: Iterable[pa.Table], name: str) -> pa.Table:
    pieces = list(batches)
    return sort(coalesce(pa.concat_tables([TABLES[name].empty_table(), *pieces]), KEYS[name]), ORDER[name])


def publish(folder: Path, tables: Mapping[str, pa.Table], meta: Mapping[str, Any]) -> None:
    """Write finished tables as Parquet and make them the run's content.

    A crash at any point leaves the run readable: ``run.json`` says ``compacted`` only when every Parquet file is in
    place, and the streams go after that.

    Raises:
        OSError: the disk is full or read-only; the streams are still there and valid.
    """
    rows = {name: _write_parquet(folder / f"{name}.parquet", table.schema, [table]) for name, table in tables.items()}
    _settle(folder, meta, rows)


def _settle(folder: Path, meta: Mapping[str, Any], rows: Mapping[str, int]) -> None:
    write_meta(folder, {**meta, "compacted": True, "rows": dict(rows)})
    for path in [*folder.glob(f"*{SUFFIX}"), *folder.glob(".*.tmp"), folder / RESERVE]:
        with suppress(OSError):
            path.unlink()


def _write_parquet(path: Path, schema: pa.Schema, pieces: Iterable[pa.Table]) -> int:
    """Write pieces as one file, all of it or nothing; returns the rows."""
    texts, rows = [f.name for f in schema if pa.types.is_string(f.type)], 0
    with (
        draft_of(path, durable=True) as draft,
        pq.ParquetWriter(draft, schema, compression="zstd", use_dictionary=texts) as writer,
    ):
        for piece in pieces:
            writer.write_table(piece)
            rows += piece.num_rows
    return rows
