"""RunWriter: takes rows while a run goes on, so that a crash loses at most its last second."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, get_args

import pyarrow as pa

from workbench.errors import StoreError
from workbench.store import owner
from workbench.store.compact import RESERVE, convert
from workbench.store.folder import disk_error
from workbench.store.meta import META, write_meta
from workbench.store.streams import SUFFIX, StreamFile
from workbench.trace import SCHEMA_VERSION, TABLES, table_of

EndStatus = Literal["complete", "failed", "cancelled"]
MAX_PENDING = 2_000_000  # rows kept in memory while the disk does not answer
_BAD_ROW = (KeyError, TypeError, ValueError, AttributeError, OverflowError, pa.ArrowException)


class RunWriter:
    """Records one run into a folder; it is a :class:`workbench.trace.Sink`.

    Rows of ``requests``, ``steps`` and ``knobs`` may come in parts, as they become known: rows with the same request,
    step or revision are merged when the run ends, and in each column the last value that is not null wins.
    The other tables take whole rows.

    A disk that fails never fails the run: the rows are dropped and counted, what was written before stays readable,
    and :meth:`close` raises.

    Args:
        folder: of this run only, see :func:`workbench.store.new_run_folder`; it is made if it is not there.
        meta: the run's metadata (label, scenario, setting, config, workload, machine, versions, SLO); the store's own
            keys (schema, id, created, status, ...) take precedence.
        flush_s: longest time between two writes.

    Attributes:
        error: the first thing that went wrong, or None.
        dropped: rows that were not recorded.

    Raises:
        StoreError: the folder cannot be written, or holds a run already.
    """

    def __init__(self, folder: Path | str, meta: Mapping[str, Any] | None = None, *, flush_s: float = 0.25) -> None:
        self.folder = Path(folder)
        self.error: StoreError | None = None
        self.dropped = 0
        self._streams: dict[str, StreamFile] = {}
        self._pending: dict[str, list[dict[str, Any]]] = {}
        self._count = 0
        self._rows_lock = threading.Lock()
        self._disk_lock = threading.Lock()
        self._closed = False
        self._stop = threading.Event()
        self._flush_s = flush_s
        self._began = time.monotonic()
        self._open(meta or {})
        self._thread = threading.Thread(target=self._work, name=f"write {self.folder.name}", daemon=True)
        self._thread.start()

    def rows(self, table: str, rows: list[dict[str, Any]]) -> None:
        """Take rows from any thread; they are only put on a list here, and must not be changed afterwards.

        Raises:
            KeyError: there is no such table.
        """
        if table not in TABLES:
            raise KeyError(f"no table {table!r}; there are {', '.join(TABLES)}")
        with self._rows_lock:
            if self._closed or self._count + len(rows) > MAX_PENDING:
                self.dropped += len(rows)
                return
            self._pending.setdefault(table, []).extend(rows)
            self._count += len(rows)

    def flush(self) -> None:
        """Write what was taken so far; done by the writer's own thread all the time."""
        with self._disk_lock:
            with self._rows_lock:
                pending, self._pending, self._count = self._pending, {}, 0
            for name, rows in pending.items():
                self._append(name, rows)

    def close(self, status: EndStatus = "complete", reason: str | None = None, **meta: Any) -> None:
        """End the run: write its last rows, its status and its Parquet files. A second call does nothing.

        Args:
            status: how the run ended; a run of which rows were lost counts as failed.
            reason: one line on why it did not complete.
            meta: more metadata, known only now; it goes before what was known at the start.

        Raises:
            StoreError: not everything could be written; what was stays readable.
        """
        if status not in get_args(EndStatus):
            raise ValueError(f"status {status!r}: expected one of {', '.join(get_args(EndStatus))}")
        with self._rows_lock:
            if self._closed:
                return
            self._closed = True
        try:
            self._stop.set()
            self._thread.join()
            self.flush()
            for stream in self._streams.values():
                stream.close()
            self._end(status, reason, meta)
        finally:
            owner.release(self.folder, self._lock)
        if self.error:
            raise self.error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close as complete, as cancelled after Ctrl-C, or as failed; a disk's error never hides the body's."""
        if error is None:
            self.close()
            return
        status: EndStatus = "failed" if isinstance(error, Exception) else "cancelled"
        try:
            self.close(status, " ".join(f"{type(error).__name__}: {error}".split()))
        except StoreError as also:
            error.add_note(str(also))

    def _open(self, meta: Mapping[str, Any]) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            there = [path.name for path in self.folder.iterdir()]
            if META in there or any(name.endswith(SUFFIX) for name in there):
                raise StoreError(f"run folder {self.folder}: holds a run already; take a new folder")
            if there and self.folder.stat().st_mode & 0o077:
                raise StoreError(f"run folder {self.folder}: holds other files, open to others; take a new folder")
            self.folder.chmod(0o700)
            self._lock = owner.claim(self.folder)
        except BlockingIOError:
            raise StoreError(f"run folder {self.folder}: another process uses it; take a new folder") from None
        except OSError as error:
            raise disk_error("cannot write the run folder", self.folder, error) from None
        self._own = {
            "schema": SCHEMA_VERSION,
            "id": self.folder.resolve().name,
            "created": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "status": "running",
            "reason": None,
            "writer": owner.this_process(),
            "compacted": False,
        }
        self._meta = {**meta, **self._own}
        try:
            (self.folder / RESERVE).write_bytes(bytes(64 * 1024))
            write_meta(self.folder, self._meta)
        except OSError as error:
            owner.release(self.folder, self._lock)
            raise disk_error("cannot write the run folder", self.folder, error) from None

    def _work(self) -> None:
        while not self._stop.wait(self._flush_s):
            try:
                self.flush()
            except Exception as error:  # noqa: BLE001  the thread must outlive whatever one batch does
                self._note(StoreError(f"run {self.folder}: {type(error).__name__}: {' '.join(str(error).split())}"))

    def _append(self, name: str, rows: list[dict[str, Any]]) -> None:
        try:
            table = table_of(name, rows)
        except _BAD_ROW:
            table = self._sound(name, rows)
        if not table.num_rows:
            return
        try:
            if name not in self._streams:
                self._streams[name] = StreamFile(self.folder / f"{name}{SUFFIX}", TABLES[name])
            self._streams[name].append(table)
        except (OSError, pa.ArrowException) as error:
            self._lose(table.num_rows, disk_error(f"cannot write {name} rows to", self.folder, error))

    def _sound(self, name: str, rows: list[dict[str, Any]]) -> pa.Table:
        """The rows that fit the table's schema; the others are dropped."""
        tables = [TABLES[name].empty_table()]
        for row in rows:
            try:
                tables.append(table_of(name, [row]))
            except _BAD_ROW as error:
                why = " ".join(str(error).split())
                self._lose(1, StoreError(f"run {self.folder}: a row of {name} does not fit: {why}"))
        return pa.concat_tables(tables)

    def _end(self, status: EndStatus, reason: str | None, meta: Mapping[str, Any]) -> None:
        refused = self.error is not None  # and not only rows that came after the end
        if self.dropped and not self.error:
            self._note(StoreError(f"run {self.folder}: {self.dropped} rows came faster than the disk took them"))
        if self.dropped and (status == "complete" or (status == "cancelled" and refused)):
            status, reason = "failed", f"{self.dropped} rows were lost: {self.error}"
        gone = [stream.path.name for stream in self._streams.values() if not stream.path.exists()]
        if gone:  # converted or deleted by somebody who could not see us: what is there now is better than nothing
            self._note(StoreError(f"run {self.folder}: {gone[0]} was taken away while the run went on; rows are lost"))
            return
        seconds = time.monotonic() - self._began
        final = {**self._meta, **meta, **self._own, "status": status, "reason": reason, "dropped": self.dropped}
        final |= {"ended": datetime.now(UTC).isoformat(timespec="milliseconds"), "duration_s": round(seconds, 3)}
        try:
            (self.folder / RESERVE).unlink(missing_ok=True)
            write_meta(self.folder, final)  # first, so that the status holds whatever happens to the rest
            convert(self.folder, final)
        except (OSError, pa.ArrowException, MemoryError) as error:
            self._note(disk_error("cannot finish the run in", self.folder, error))

    def _lose(self, rows: int, error: StoreError) -> None:
        with self._rows_lock:
            self.dropped += rows
        self._note(error)

    def _note(self, error: StoreError) -> None:
        if self.error is None:
            self.error = error
