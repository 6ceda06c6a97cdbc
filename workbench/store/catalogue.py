"""SQL over all runs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from workbench.errors import StoreError, WorkbenchError
from workbench.store.folder import default_root
from workbench.store.listing import list_runs
from workbench.store.meta import read_meta, short, status_of
from workbench.store.reader import open_run
from workbench.trace import TABLES

if TYPE_CHECKING:
    import duckdb

_RUNS = {
    "run": "VARCHAR",
    "created": "TIMESTAMPTZ",
    "label": "VARCHAR",
    "scenario": "VARCHAR",
    "setting": "VARCHAR",
    "status": "VARCHAR",
    "reason": "VARCHAR",
    "duration_s": "DOUBLE",
    "dropped": "BIGINT",
    "meta": "VARCHAR",
}


def catalogue(root: Path | str | None = None) -> duckdb.DuckDBPyConnection:
    """Open an in-memory DuckDB over the runs in ``root``.

    It has a view for each table of a trace, with a first column ``run`` that holds the run's id, and a view ``runs``
    with the metadata (``meta`` is all of it, as JSON). Runs that ended are in it, however they ended: filter on
    ``runs.status``. A run that is still going on is not; one that a crash left is recovered first.

    Raises:
        StoreError: a file of a run is damaged.
    """
    root = (default_root() if root is None else Path(root)).resolve()
    import duckdb  # here, since only SQL needs it

    connection = duckdb.connect(config={"autoinstall_known_extensions": False})
    found = dict(_ended(root))
    connection.execute(f"CREATE TABLE _runs ({', '.join(f'{name} {kind}' for name, kind in _RUNS.items())})")
    if found:
        marks = ", ".join("?" * len(_RUNS))
        connection.executemany(f"INSERT INTO _runs VALUES ({marks})", [_row(*run) for run in found.items()])  # noqa: S608
    connection.execute("CREATE VIEW runs AS SELECT * FROM _runs ORDER BY created, run")
    for name, schema in TABLES.items():
        files = [root / run / f"{name}.parquet" for run, meta in found.items() if name in meta.get("rows", {})]
        files = [path for path in files if path.is_file()]
        try:
            connection.execute(_view(name, schema, files))
        except duckdb.Error as error:
            raise _damaged(files, error) from None
    return connection


def _damaged(files: Iterable[Path], error: Exception) -> StoreError:
    """Which file keeps a view from being made."""
    for path in files:
        try:
            pq.ParquetFile(path)
        except (OSError, pa.ArrowException) as bad:
            why = " ".join(str(bad).split())[:300]
            return StoreError(f"{path}: damaged, expected a Parquet file ({why}); delete the run")
    return StoreError(f"cannot look at all runs at once: {' '.join(str(error).split())[:300]}; delete the damaged run")


def _ended(root: Path) -> Iterable[tuple[str, dict[str, Any]]]:
    for run in list_runs(root)["id"]:
        folder = root / run
        with suppress(WorkbenchError, OSError):
            meta = read_meta(folder)
            if not meta.get("compacted") and status_of(folder, meta) != "running":
                open_run(folder)
                meta = read_meta(folder)
            if meta.get("compacted"):
                yield run, meta


def _row(run: str, meta: dict[str, Any]) -> list[Any]:
    known = {name: meta.get(name) for name in _RUNS}
    known |= {name: short(meta.get(name)) for name in ("label", "scenario", "setting", "reason")}
    known |= {"run": run, "meta": json.dumps(meta, ensure_ascii=False)}
    return list(known.values())


def _view(name: str, schema: pa.Schema, files: list[Path]) -> str:
    """SQL of the view ``name``: its columns in order, whatever older runs have."""
    empty = ", ".join(f'CAST(NULL AS {_sql(field.type)}) AS "{field.name}"' for field in schema)
    sql = f"SELECT CAST(NULL AS VARCHAR) AS run, {empty} WHERE false"
    if files:
        listed = ", ".join(_literal(path) for path in files)
        read = f"read_parquet([{listed}], union_by_name=true, hive_partitioning=false, filename='_file')"
        sql += f" UNION ALL BY NAME SELECT parse_path(_file, '/')[-2] AS run, * EXCLUDE (_file) FROM {read}"  # noqa: S608
    return f'CREATE VIEW "{name}" AS {sql}'


def _literal(path: Path) -> str:
    """A path as an SQL string in which no character is a wildcard."""
    plain = "".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path))
    return "'" + plain.replace("'", "''") + "'"


def _sql(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"{_sql(kind.value_type)}[]"
    return {"string": "VARCHAR", "double": "DOUBLE", "float": "FLOAT", "int64": "BIGINT", "int32": "INTEGER"}.get(
        str(kind), "BOOLEAN"
    )
