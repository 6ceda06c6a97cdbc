"""What leaves a session: a saved run with its report, and two runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from workbench.errors import InputError
from workbench.i18n import marked, phrase
from workbench.report.run import ReportRun
from workbench.run import RecordedRun
from workbench.store import list_runs, new_run_folder, snapshot

REPORT = "report.html"
_ENDED = ("complete", "cancelled", "failed", "interrupted")


def save(run: RecordedRun, root: Path | None, name: str | None = None, lang: str | None = None) -> RecordedRun:
    """Copy a run, as far as it is recorded, into a folder of its own with a report in it.

    Args:
        run: going on or ended.
        root: of the run folders.
        name: of the copy; by default that of its scenario.
        lang: language of the report.

    Raises:
        StoreError: it cannot be written.
    """
    from workbench.report.html import write_report  # here, since Altair takes two seconds to import

    title = " ".join((name or f"saved {run.meta.get('scenario') or 'run'}").split())
    folder = new_run_folder(root, title)
    snapshot(run.folder, folder, title=title)
    saved = RecordedRun(folder)
    write_report(folder / REPORT, [ReportRun.of(saved)], title=title, question=question_of(saved), lang=lang)
    return saved


def report(run: RecordedRun, path: Path | None = None, lang: str | None = None) -> Path:
    """Write a run's report, as far as it is recorded.

    Args:
        run: going on or ended.
        path: of the HTML file; by default ``report.html`` in the run's folder.
        lang: language of the report.

    Raises:
        StoreError: it cannot be written.
    """
    from workbench.report.html import write_report  # as above

    named = str(run.meta.get("title") or run.meta.get("scenario") or "run").replace("_", " ")
    return write_report(
        path or run.folder / REPORT, [ReportRun.of(run)], title=named, question=question_of(run), lang=lang
    )


def question_of(run: RecordedRun) -> str:
    """What a run was played to answer."""
    return str(run.meta.get("question") or marked("What did this load get from this engine?"))


def side_by_side(runs: Sequence[RecordedRun]) -> pd.DataFrame:
    """The figures that people look at first: one row a figure, one column a run, and the ratio of the last two.

    A difference between two single runs is not yet evidence: it holds the machine's noise as well.

    Raises:
        InputError: fewer than two runs.
    """
    if len(runs) < 2:
        raise InputError(
            phrase("runs to compare"), len(runs), phrase("at least two"), phrase("play another load first")
        )
    columns: dict[str, pd.Series] = {}
    for run in runs:
        label = str(run.meta.get("title") or run.meta.get("setting") or run.meta.get("scenario") or run.folder.name)
        if label in columns:
            label = run.folder.name
        columns[label] = pd.to_numeric(run.kpis["value"], errors="coerce")
    frame = pd.DataFrame(columns)
    before, after = frame.iloc[:, -2], frame.iloc[:, -1]
    frame["ratio"] = after / before.where(before != 0)
    return frame


def run_before(run: RecordedRun) -> RecordedRun | None:
    """The newest run of the same folder that was recorded before ``run``, has ended, and is not a copy."""
    listed = list_runs(run.folder.parent)
    for name in reversed(listed.loc[listed["status"].isin(_ENDED), "id"].tolist()):
        if name < run.folder.name and "saved_from" not in (earlier := RecordedRun(run.folder.parent / name)).meta:
            return earlier
    return None
