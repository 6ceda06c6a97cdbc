"""A result file as a run folder, so that it can be shown, compared and reported like a run of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from workbench.exchange.results import read_results
from workbench.run import RecordedRun
from workbench.store import RunWriter, new_run_folder
from workbench.trace import Trace


def import_file(
    path: Path | str, root: Path | str | None = None, *, name: str | None = None, which: int | None = None
) -> RecordedRun:
    """Read a result file of another tool and record it as a run.

    Args:
        path: the file, see :func:`workbench.exchange.read_results`.
        root: folder of the runs; by default ``WORKBENCH_RUNS`` or ``runs``.
        name: of the run; by default that of the file.
        which: number of the benchmark in a file with several.

    Raises:
        TraceFileError: it cannot be read; nothing is recorded then.
        StoreError: the run cannot be written.
    """
    trace = read_results(path, which).trace()
    return record(trace, root, name or f"import {Path(path).stem}")


def record(trace: Trace, root: Path | str | None, name: str) -> RecordedRun:
    """Write a trace as a run folder.

    Raises:
        StoreError: it cannot be written.
    """
    folder = new_run_folder(root, name)
    meta: dict[str, Any] = {"scenario": name, "question": f"What does {name} hold?", **trace.meta}
    with RunWriter(folder, meta) as writer:
        for table, rows in trace.tables.items():
            for batch in rows.to_batches(max_chunksize=50_000):
                writer.rows(table, batch.to_pylist())
                writer.flush()  # else more than the writer holds could be on its way
    return RecordedRun(folder)
