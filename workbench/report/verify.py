"""verify_report: reopen a report and check that it is self-contained, whole, and true to its own data."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from workbench.errors import RunNotFoundError
from workbench.i18n import TAGS, speaking
from workbench.report.packed import unpack_table
from workbench.report.parsed import Page
from workbench.report.ranked import Ranked
from workbench.report.run import ReportRun
from workbench.report.seal import broken_seal
from workbench.report.table import COLUMNS
from workbench.store.meta import plain
from workbench.units import MIB

_HEAD = 4096  # characters in which a page says what it is
FORMAT = 2  # of the data inside
_GAP_ROUNDING = 0.0006  # ms; the data inside is rounded to a microsecond
_MIB_ROUNDING = 0.0006


def verify_report(path: Path | str, runs: Sequence[ReportRun] | None = None) -> list[str]:
    """Reopen a report and return what is wrong with it, one line each; an empty list is a sound report.

    Checked: nothing in the page points outside of it; no script but its own; every chart is there, drawn and with its
    spec; the comparison table's text is what its data say; count, P50, P99 and longest gap, stalls and peak worked
    out anew from the embedded gaps and steps are those of the embedded summary (where the gaps were thinned out, their
    ranks tell the percentiles); no character of the file was changed since it was written.

    Args:
        path: of the file.
        runs: what the report was made from; when given, the embedded summaries must equal theirs.

    Raises:
        RunNotFoundError: there is no such file.
    """
    path = Path(path)
    if not path.is_file():
        raise RunNotFoundError("report", path, "an HTML file that write_report made", "check the path")
    page = Page()
    text = path.read_text(encoding="utf-8", errors="replace")
    page.feed(text)
    page.close()
    report = page.data("report-data")
    if not isinstance(report, dict) or "runs" not in report:
        return [*page.problems, "no data inside: the file is not a report or was cut short"]
    if report.get("format") != FORMAT:
        return [*page.problems, f"data of format {report.get('format')}, expected {FORMAT}: written by another version"]
    return [
        *page.problems,
        *_scripts(page),
        *_charts(page, report),
        *_told_table(page, report),
        *(problem for run in report["runs"] for problem in _run(run)),
        *(_given(report, runs) if runs is not None else ()),
        *broken_seal(text),
    ]


def summary_of(path: Path | str) -> dict[str, int]:
    """How many charts and runs a report has, and its size in bytes; zeros for what is no report."""
    path = Path(path)
    page = Page()
    page.feed(path.read_text(encoding="utf-8", errors="replace"))
    report = page.data("report-data") or {}
    return {
        "charts": len(page.charts),
        "runs": len(report.get("runs", ())),
        "bytes": path.stat().st_size,
    }


def is_sheet(path: Path | str) -> bool:
    """Whether a file is a verdict sheet (see :mod:`workbench.report.sheet`), and not a report of runs."""
    with Path(path).open(encoding="utf-8", errors="replace") as file:
        return 'content="workbench claims' in file.read(_HEAD)


def _scripts(page: Page) -> Iterator[str]:
    if len(page.scripts) != 1:
        yield f"{len(page.scripts)} scripts in the page, expected 1"
    for script in page.scripts:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        if f"'sha256-{digest}'" not in page.policy:
            yield "a script that the page's own policy does not name"
    if "default-src 'none'" not in page.policy:
        yield "no content security policy that forbids connections"


def _charts(page: Page, report: Mapping[str, Any]) -> Iterator[str]:
    names = report.get("charts", [])
    if list(page.charts) != names:
        yield f"{len(page.charts)} charts in the page, expected {len(names)}"
    for name in names:
        if not page.charts.get(name):
            yield f"chart {name}: no static drawing"
        if not isinstance(page.specs, dict) or not isinstance(page.specs.get(name), dict):
            yield f"chart {name}: no spec"


def _told_table(page: Page, report: Mapping[str, Any]) -> list[str]:
    """The faults of the table, which is read in the language of the page."""
    with speaking("zh" if page.lang == TAGS["zh"] else "en"):
        return list(_table(page, report))


def _table(page: Page, report: Mapping[str, Any]) -> Iterator[str]:
    shown = [row for row in page.rows if "budget" in row]
    if len(shown) != len(report["rows"]) or len(shown) != len(report["runs"]):
        yield f"{len(shown)} rows in the comparison table, expected {len(report['runs'])}"
        return
    for texts, row, run in zip(shown, report["rows"], report["runs"], strict=True):
        for column in COLUMNS:
            text, expected = texts.get(column.key), column.text(row.get(column.key))
            if text != expected:
                yield f"{run['label']}: {column.key} reads {text!r} in the table, its data say {expected!r}"


def _run(run: Mapping[str, Any]) -> Iterator[str]:
    """Figures worked out anew from the embedded data against the embedded summary."""
    summary, label = run["summary"], run["label"]
    try:
        data = {name: unpack_table(table["data"]) for name, table in run["data"].items()}
    except (ValueError, KeyError, TypeError) as error:
        yield f"{label}: a table cannot be unpacked: {error}"
        return
    for name, table in run["data"].items():
        rows = max((len(column) for column in data[name].values()), default=0)
        if rows != table["rows"]:
            yield f"{label}: {rows} rows of {name}, expected {table['rows']}"
    gaps = Ranked.of(data["gaps"], run["data"]["gaps"]["of"])
    peaks = [mib for mib in data["steps"].get("activation_mib", []) if mib is not None]
    peak = summary.get("peak_activation_bytes")
    above = gaps.above(run["slo"]["gap_ms"])
    found = {
        "gap_count": (gaps.count, summary.get("gap_count"), 0.0),
        "gap_p50_ms": (gaps.percentile(50), summary.get("gap_p50_ms"), _GAP_ROUNDING),
        "gap_p99_ms": (gaps.percentile(99), summary.get("gap_p99_ms"), _GAP_ROUNDING),
        "gap_max_ms": (gaps.percentile(100), summary.get("gap_max_ms"), _GAP_ROUNDING),
        "stalls": (above if gaps.count or summary.get("stalls") is not None else None, summary.get("stalls"), 0.0),
        "peak_activation_mib": (max(peaks, default=None), None if peak is None else peak / MIB, _MIB_ROUNDING),
    }
    for name, (ours, theirs, slack) in found.items():
        if not _same(ours, theirs, slack):
            yield f"{label}: {name} is {theirs} in the summary, {ours} from the data"


def _given(report: Mapping[str, Any], runs: Sequence[ReportRun]) -> Iterator[str]:
    if [run["label"] for run in report["runs"]] != [run.label for run in runs]:
        yield "the runs inside are not the ones given"
        return
    for inside, run in zip(report["runs"], runs, strict=True):
        given = plain(run.figures)
        for key in sorted(given.keys() | inside["summary"].keys()):
            if inside["summary"].get(key) != given.get(key):
                yield f"{run.label}: {key} is {inside['summary'].get(key)} in the report, {given.get(key)} in the run"


def _same(ours: float | None, theirs: float | None, slack: float) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    return math.isclose(ours, theirs, rel_tol=1e-9, abs_tol=slack)
