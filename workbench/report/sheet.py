"""The verdict sheet as one HTML file: no script, no address in it, and checked after it is written."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from markupsafe import Markup

from workbench import __version__
from workbench.claims.sheet import HEADINGS, NOT_JUDGED, Row, Sheet
from workbench.errors import RunNotFoundError
from workbench.i18n import TAGS, marked, spoken, translate
from workbench.machine import machine_facts
from workbench.report.frame import place, style, template
from workbench.report.parsed import outside
from workbench.report.seal import broken_seal
from workbench.report.sheet_charts import PICTURES, claim_chart
from workbench.report.svg import static_svg
from workbench.ui.charts.localise import localise

TITLE = marked("What articles say of chunked prefill, and what was seen here")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"


@dataclass(frozen=True)
class Entry:
    """A row of the sheet as the page shows it; ``svg`` is empty where there is no picture."""

    row: Row
    svg: str

    @property
    def css(self) -> str:
        """Class of its verdict."""
        return self.row.word.replace(" ", "-")


def write_sheet(path: Path | str, sheet: Sheet, *, on_progress: Callable[[int, int, str], None] | None = None) -> Path:
    """Write the sheet as one self-contained page without scripts, check it, and return its path.

    Args:
        path: of the file; one that is there is replaced, once the new one is complete.
        sheet: what to write.
        on_progress: called with (done, total, claim) while charts are drawn, which takes some seconds.

    Raises:
        StoreError: the file cannot be written, or does not pass :func:`verify_sheet`.
    """
    path, entries = Path(path), []
    for done, row in enumerate(sheet.rows):
        if on_progress:
            on_progress(done, len(sheet.rows), row.claim.id)
        entries.append(Entry(row, _drawn(row)))
    machine = machine_facts()
    page = template("sheet.html.j2").render(
        title=translate(TITLE),
        language=TAGS[spoken()],
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
        machine=translate("{processor}, {cores} cores", processor=machine["processor"], cores=machine["usable_cores"]),
        summary=translate(sheet.summary),
        trouble=[translate(line) for line in sheet.trouble],
        headings=HEADINGS,
        not_judged=NOT_JUDGED,
        entries=entries,
        manifest={"claims": [_plain(row) for row in sheet.rows]},
        style=Markup(style()),  # noqa: S704  # ours, not a person's
        policy=_POLICY,
    )
    return place(path, page, verify_sheet)


def verify_sheet(path: Path | str) -> list[str]:
    """Reopen a sheet and return what is wrong with it, one line each; an empty list is a sound sheet.

    Checked: nothing in the page points outside of it, it has no script and forbids connections, and what stands in
    the table is what its data say, and no character of the file was changed since it was written.

    Raises:
        RunNotFoundError: there is no such file.
    """
    path = Path(path)
    if not path.is_file():
        raise RunNotFoundError("sheet", path, "an HTML file that workbench claims wrote", "check the path")
    text = path.read_text(encoding="utf-8", errors="replace")
    page = _Page()
    page.feed(text)
    page.close()
    problems = outside(text)  # says so too where there is a script
    if _POLICY not in page.policies:
        problems.append("no content security policy that forbids connections")
    try:
        said = json.loads(page.manifest)["claims"]
    except (ValueError, TypeError, KeyError):
        return [*problems, "no data inside: the file is not a verdict sheet or was cut short"]
    wanted = [one.get("shown") or [one[name] for name in HEADINGS] for one in said]
    if page.rows != wanted:
        wrong = next((str(want[0]) for want, got in zip(wanted, page.rows, strict=False) if want != got), "rows")
        problems.append(f"{wrong}: the table is not what the data say")
    return [*problems, *broken_seal(text)]


def _drawn(row: Row) -> str:
    if row.verdict is None or row.claim.id not in PICTURES:
        return ""
    spec: dict[str, Any] = localise(claim_chart(row).to_dict())
    spec.pop("$schema", None)  # an address
    return static_svg(spec, row.claim.id)


def _plain(row: Row) -> dict[str, Any]:
    """A row as data, in English; in another language what is shown of it stands beside."""
    cells = (row.claim.id, row.claim.text, row.word, row.numbers, row.origin or NOT_JUDGED)
    notes = dict(row.verdict.notes) if row.verdict else {}
    plain = dict(zip(HEADINGS, cells, strict=True)) | {"source": row.source, "notes": notes}
    return plain if spoken() == "en" else plain | {"shown": [translate(cell) for cell in cells]}


class _Page(HTMLParser):
    """Reads the table, the data beside it and what the page forbids itself."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.rows: list[list[str]] = []
        self.policies: list[str] = []
        self.manifest = ""
        self._in = ""

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "meta" and (given.get("http-equiv") or "").lower() == "content-security-policy":
            self.policies.append(given.get("content") or "")
        if tag == "script" and given.get("id") == "sheet-data":
            self._in = "data"
        if tag == "tr" and "data-claim" in given:
            self.rows.append([])
        if "data-cell" in given:
            self._in = "cell"
            self.rows[-1].append("")

    def handle_data(self, data: str) -> None:
        if self._in == "data":
            self.manifest += data
        elif self._in == "cell":
            self.rows[-1][-1] += data

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "span"):
            self._in = ""
