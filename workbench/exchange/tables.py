"""A trace as a folder of CSV or Parquet files, and back to exactly the same trace; as pandas data frames.

A folder holds one file a table and ``meta.json``. In CSV an empty cell is null and ``""`` an empty text; floats are
written with as many digits as bring them back; lists are JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from workbench.errors import StoreError, TraceFileError
from workbench.json_file import parse_json, read_json
from workbench.store.meta import plain
from workbench.trace import TABLES, Trace

META = "meta.json"
MOST_BYTES = 4 << 30  # of one file that is read


def to_pandas(trace: Trace) -> dict[str, pd.DataFrame]:
    """A data frame for each table; each has the run's metadata in ``attrs``. Whole numbers with nulls are ``Int64``."""
    kinds = {pa.int64(): pd.Int64Dtype(), pa.int32(): pd.Int32Dtype(), pa.bool_(): pd.BooleanDtype()}
    frames = {}
    for name, table in trace.tables.items():
        frames[name] = table.to_pandas(types_mapper=kinds.get)
        frames[name].attrs = {"meta": dict(trace.meta), "table": name}
    return frames


def write_csv(trace: Trace, folder: Path | str) -> Path:
    """Write one CSV file a table, and the metadata as JSON, into a folder that is new or empty.

    Raises:
        StoreError: it cannot be written.
    """

    def write(table: pa.Table, path: Path) -> None:
        pcsv.write_csv(_flat(table), path, pcsv.WriteOptions(quoting_style="needed"))

    return _write(trace, Path(folder), "csv", write)


def write_parquet(trace: Trace, folder: Path | str) -> Path:
    """Write one Parquet file a table, and the metadata as JSON, into a folder that is new or empty.

    Raises:
        StoreError: it cannot be written.
    """
    return _write(trace, Path(folder), "parquet", lambda table, path: pq.write_table(table, path, compression="zstd"))


def read_csv(folder: Path | str) -> Trace:
    """Read what :func:`write_csv` wrote; a table whose file is missing is empty.

    Raises:
        TraceFileError: it is no such folder, or a file does not hold that table.
    """

    def read(path: Path, schema: pa.Schema) -> pa.Table:
        types = {field.name: pa.string() if pa.types.is_list(field.type) else field.type for field in schema}
        table = pcsv.read_csv(
            path,
            convert_options=pcsv.ConvertOptions(
                column_types=types, strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=[""]
            ),
            parse_options=pcsv.ParseOptions(newlines_in_values=True),
        )
        return _nested(table, schema)

    return _read(Path(folder), "csv", read)


def read_parquet(folder: Path | str) -> Trace:
    """Read what :func:`write_parquet` wrote; a table whose file is missing is empty.

    Raises:
        TraceFileError: it is no such folder, or a file does not hold that table.
    """
    return _read(Path(folder), "parquet", lambda path, _schema: pq.ParquetFile(path).read())


def _write(trace: Trace, folder: Path, suffix: str, write: Callable[[pa.Table, Path], None]) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise StoreError(f"cannot write to {folder}: it is not empty; choose another folder")
        for name, table in trace.tables.items():
            write(table, folder / f"{name}.{suffix}")
        text = json.dumps(plain(trace.meta), indent=1, ensure_ascii=False, allow_nan=False)
        (folder / META).write_text(text, encoding="utf-8")
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"cannot write to {folder}: {_line(error)}; choose another folder") from None
    return folder


def _read(folder: Path, suffix: str, read: Callable[[Path, pa.Schema], pa.Table]) -> Trace:
    tables, there = {}, False
    for name, schema in TABLES.items():
        path = folder / f"{name}.{suffix}"
        if not path.is_file():
            tables[name] = schema.empty_table()
            continue
        there = True
        if path.stat().st_size > MOST_BYTES:
            raise TraceFileError(
                str(path), f"{path.stat().st_size:,} bytes", f"at most {MOST_BYTES:,}", "split the run"
            )
        try:
            tables[name] = _fitted(read(path, schema), schema)
        except (OSError, pa.ArrowException, ValueError, TypeError, KeyError, RecursionError) as error:
            raise TraceFileError(
                str(path), _line(error), f"the table {name} of a trace", "export the run again"
            ) from None
    if not there:
        raise TraceFileError(str(folder), "no table", f"a folder with requests.{suffix} and others", "check the path")
    return Trace(tables, _meta(folder / META))


def _meta(path: Path) -> Mapping[str, Any]:
    try:
        found = read_json(path)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise TraceFileError(str(path), _line(error), "a JSON object", "export the run again") from None
    if not isinstance(found, dict):
        raise TraceFileError(str(path), type(found).__name__, "a JSON object", "export the run again")
    return found


def _fitted(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """The table with exactly the columns of the schema; those that the file does not have are null."""
    unknown = [name for name in table.column_names if name not in schema.names]
    if unknown or len(set(table.column_names)) < len(table.column_names):
        raise ValueError(f"columns {', '.join(unknown) or 'that stand there twice'}")
    columns = [
        table[field.name].cast(field.type) if field.name in table.column_names else pa.nulls(len(table), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def _flat(table: pa.Table) -> pa.Table:
    """The table with lists as JSON, and floats as the shortest text that brings them back."""
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        if pa.types.is_list(field.type):
            column = pa.array([None if row is None else json.dumps(row) for row in column.to_pylist()], pa.string())
        elif pa.types.is_float32(field.type):
            kept = [
                None if row is None else repr(np.float32(row).item()) if row != row else str(np.float32(row))
                for row in column.to_pylist()
            ]
            column = pa.array(kept, pa.string())
        columns.append(column)
    return pa.table(columns, names=table.schema.names)


def _nested(table: pa.Table, schema: pa.Schema) -> pa.Table:
    for i, name in enumerate(table.column_names):
        kind = schema.field(name).type if name in schema.names else None
        if kind is not None and pa.types.is_list(kind):
            rows = [None if text is None else _strings(text) for text in table[name].to_pylist()]
            table = table.set_column(i, name, pa.array(rows, kind))
    return table


def _strings(text: str) -> list[str]:
    found = parse_json(text)
    if not isinstance(found, list) or not all(isinstance(one, str | None) for one in found):
        raise ValueError(f"{text[:40]!r} is no list of texts")
    return found


def _line(error: BaseException) -> str:
    return " ".join(f"{getattr(error, 'strerror', None) or error}".split())[:160] or type(error).__name__
