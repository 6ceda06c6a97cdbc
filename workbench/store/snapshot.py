"""A run as it is at this moment, in a folder of its own: what stays when the run itself goes on."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from workbench.store.compact import publish
from workbench.store.folder import disk_error
from workbench.store.meta import duration_of
from workbench.store.reader import open_run
from workbench.trace import SCHEMA_VERSION, Trace


def snapshot(source: Path | str, folder: Path | str, **meta: Any) -> Trace:
    """Copy what a run has recorded so far.

    A run that is going on is copied as a run that was cancelled now: whatever was measured is there, requests that
    have not ended are unfinished.

    Args:
        source: a run folder.
        folder: an empty folder, see :func:`workbench.store.new_run_folder`.
        **meta: more metadata, such as a title.

    Raises:
        RunNotFoundError: ``source`` is not a run.
        StoreError: it cannot be read, or the copy cannot be written.
    """
    folder, trace = Path(folder), open_run(source)
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    ended: dict[str, Any] = {}
    if trace.meta["status"] == "running":
        ended = {"status": "cancelled", "reason": "saved while it went on", "ended": now}
        ended["duration_s"] = duration_of(Path(source), trace.meta)
    own = {"schema": SCHEMA_VERSION, "id": folder.resolve().name, "saved_from": trace.meta["id"], "saved": now}
    copy = Trace(trace.tables, {**trace.meta, **ended, **meta, **own})
    try:
        publish(folder, copy.tables, copy.meta)
    except OSError as error:
        raise disk_error("cannot write", folder, error) from None
    return copy
