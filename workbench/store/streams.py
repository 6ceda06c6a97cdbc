"""Arrow IPC streams that a kill -9 can cut anywhere: appended batch by batch, read up to the last whole batch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pyarrow as pa

from workbench.json_file import regular

SUFFIX = ".arrows"


class _Collector:
    """A file for Arrow that keeps the bytes, so that a batch reaches the disk whole or not at all."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> int:
        self._parts.append(bytes(data))
        self._size += len(data)
        return len(data)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        pass

    def close(self) -> None:
        self.closed = True

    def take(self) -> bytes:
        data = b"".join(self._parts)
        self._parts.clear()
        return data


class StreamFile:
    """One table's stream on disk.

    Args:
        path: the file to make; it must not be there.
        schema: of every batch.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        self.path = path
        self._fd = os.open(path, flags, 0o600)
        self._size = 0
        self._bytes = _Collector()
        options = pa.ipc.IpcWriteOptions(compression="zstd")
        self._arrow = pa.ipc.new_stream(pa.PythonFile(self._bytes, "w"), schema, options=options)
        self._arrow.write_batch(pa.RecordBatch.from_pylist([], schema=schema))
        self._head = self._bytes.take()  # the schema: goes out before the first batch that fits on the disk

    def append(self, rows: pa.Table) -> None:
        """Write ``rows``; when that fails the file is cut back to its last whole batch.

        Raises:
            OSError: the disk is full, read-only or gone.
        """
        for batch in rows.to_batches():
            self._arrow.write_batch(batch)
        self._write(self._head + self._bytes.take())
        self._head = b""

    def close(self) -> None:
        """Close the file; the end mark is left out, since a reader does not need it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._fd, left) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._fd, self._size)
            raise
        self._size += len(data)


class Batches:
    """The sound batches of a stream, one by one; iterate again to read again.

    Every batch is checked in full, since Arrow trusts what it reads and a bad offset would end the process.

    Args:
        path: the stream.
        schema: of every batch that is returned.

    Attributes:
        whole: whether the file ended on a whole batch; known once all were read.

    Raises:
        OSError: the stream cannot be read at all.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.path, self.schema = path, schema
        self.whole = not regular(path).stat().st_size

    def __iter__(self) -> Iterator[pa.Table]:
        if not regular(self.path).stat().st_size:
            return
        self.whole = False
        with self.path.open("rb") as file:  # not mapped: the writer may cut the file while we look at it
            try:
                reader = pa.ipc.open_stream(file)
                while True:
                    batch = reader.read_next_batch()
                    batch.validate(full=True)
                    yield conform(pa.Table.from_batches([batch]), self.schema)
            except StopIteration:
                self.whole = True
            except (pa.ArrowException, OSError, ValueError, MemoryError):
                pass


def read_stream(path: Path, schema: pa.Schema) -> tuple[pa.Table, bool]:
    """Read a stream as far as it is sound.

    Returns:
        The rows, and whether the file ended on a whole batch.

    Raises:
        OSError: the file cannot be read at all.
    """
    batches = Batches(path, schema)
    tables = list(batches)
    return (pa.concat_tables(tables) if tables else schema.empty_table()), batches.whole


def conform(table: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return ``table`` with exactly ``schema``: what an older version did not have is null, the rest is cast.

    Raises:
        pa.ArrowException: a column stands there twice, or cannot be cast.
    """
    if table.schema.equals(schema):
        return table.replace_schema_metadata(None)
    has = set(table.column_names)
    if len(has) < len(table.column_names):
        raise pa.ArrowInvalid("a column stands there twice")
    return pa.table(
        [table[f.name].cast(f.type) if f.name in has else pa.nulls(table.num_rows, f.type) for f in schema],
        schema=schema,
    )
