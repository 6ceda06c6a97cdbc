"""The demo: one long prompt among running chats under six settings, on one engine that is never restarted."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from workbench.handover import REPORT
from workbench.store import prepare_root
from workbench.store.folder import disk_error
from workbench.sweep import Played

SCENARIO = "chat_and_long"
SUMMARY, RUNS = "summary.json", "runs"


def prepare(folder: Path) -> Path:
    """Make the folder of a demo's results and return where its runs go; fails before an engine is started.

    Raises:
        StoreError: it cannot be written.
    """
    return prepare_root(folder / RUNS)


def save_summary(folder: Path, played: Sequence[Played], facts: dict[str, Any]) -> list[dict[str, Any]]:
    """Write ``summary.json``: the rows, and what they were measured on.

    Returns:
        The rows.

    Raises:
        StoreError: it cannot be written.
    """
    rows = [one.row for one in played]
    try:
        (folder / SUMMARY).write_text(json.dumps({"rows": rows, **facts}, indent=2, default=str) + "\n")
    except OSError as error:
        raise disk_error("cannot write", folder / SUMMARY, error) from None
    return rows


def save_report(
    folder: Path,
    played: Sequence[Played],
    rows: Sequence[dict[str, Any]],
    reproduce: str,
    on_progress: Callable[[int, int, str], None],
) -> Path:
    """Write ``report.html``, with the command that makes it again, and return its path.

    Raises:
        StoreError: it cannot be written.
    """
    from workbench.report.html import write_report  # here, since Altair takes two seconds to import

    meta = played[0].run.meta
    return write_report(
        folder / REPORT,
        [one.report for one in played],
        title="One long prompt among running chats",
        question=str(meta.get("question") or ""),
        rows=rows,
        reproduce=reproduce,
        on_progress=on_progress,
    )
