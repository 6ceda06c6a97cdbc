"""write_report: everything in one file that asks for nothing from anywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from markupsafe import Markup

from workbench import __version__
from workbench.errors import ConfigError
from workbench.i18n import TAGS, marked, speaking, spoken, translate
from workbench.redact import redact
from workbench.report.definitions import definitions
from workbench.report.download import Packed, pack_runs
from workbench.report.environment import is_long, sections
from workbench.report.finding import finding
from workbench.report.frame import place, policy, script_of_page, style, template
from workbench.report.intervals import Compared, intervals
from workbench.report.packed import pack
from workbench.report.page import Planned, Section, plan
from workbench.report.reproduce import again, serve_commands
from workbench.report.run import ReportRun
from workbench.report.selfcheck import self_check
from workbench.report.table import COLUMNS, cells
from workbench.report.verdicts import verdicts
from workbench.report.verify import FORMAT, verify_report
from workbench.store.meta import plain
from workbench.ui.charts import origin

MOST_BYTES = 3_000_000  # of a report: what people can send each other
_AROUND = 150_000  # bytes beside script, drawings, specs and tables
_LEAST_DATA = 250_000  # bytes that the tables get in any case
_CUT = (marked("failed"), marked("interrupted"))  # how a run may end without coming to its end
_STORE_KEYS = {"writer", "rows", "schema", "compacted", "knobs"}  # the store's own bookkeeping


def write_report(
    path: Path | str,
    runs: Sequence[ReportRun],
    *,
    title: str,
    question: str,
    rows: Sequence[Mapping[str, Any]] | None = None,
    environment: Mapping[str, Any] | None = None,
    reproduce: str = "",
    compared: Compared | None = None,
    answer: Sequence[str] = (),
    before: Sequence[Planned] = (),
    lang: str | None = None,
    on_progress: Callable[[int, int, str], None] | None = None,
) -> Path:
    """Write one self-contained HTML report, check it, and return its path.

    Args:
        path: of the file; a file that is there is replaced, once the new one is complete.
        runs: at least one, with distinct labels.
        title: heading.
        question: what the runs were made to answer.
        rows: comparison table, one mapping a run in the same order, with the keys of
            :data:`workbench.report.table.COLUMNS` and optionally ``engine_pid``; none works it out from the runs.
        environment: hardware, versions, engine command, seed, scenario; none takes the first run's metadata.
            Secrets in it are hidden.
        reproduce: shell command that makes the report again; empty takes the commands that play the runs again.
        compared: two runs with the intervals of their ratios, see :mod:`workbench.tune.compare`.
        answer: sentences in place of the finding, the first as its headline; none finds what the runs say.
        before: sections of charts that stand before those of the runs.
        lang: language of the page, see :mod:`workbench.i18n`; none takes the one that is spoken.
        on_progress: called with (done, total, what) while charts are drawn, which takes some seconds.

    Raises:
        ConfigError: no runs, two with one label, or as many rows as there are not runs.
        InputError: there are no messages in that language.
        StoreError: the file cannot be written, or does not pass :func:`verify_report`.
    """
    path = Path(path)
    _check(runs, rows)
    with speaking(lang):
        return _write(path, runs, title, question, rows, environment, reproduce, compared, answer, before, on_progress)


def _write(
    path: Path,
    runs: Sequence[ReportRun],
    title: str,
    question: str,
    rows: Sequence[Mapping[str, Any]] | None,
    environment: Mapping[str, Any] | None,
    reproduce: str,
    compared: Compared | None,
    answer: Sequence[str],
    before: Sequence[Planned],
    on_progress: Callable[[int, int, str], None] | None,
) -> Path:
    table = [plain(row) for row in (rows or [run.row() for run in runs])]
    planned = [*before, *plan(runs)]
    total, done = sum(len(part.charts) for part in planned), 0

    def tick(what: str) -> None:
        nonlocal done
        if on_progress:
            on_progress(done, total, what)
        done += 1

    charts = [part.draw(tick) for part in planned]
    ended = _ended(runs)
    headline, second, tiles = finding([runs[one].label for one in ended], [table[one] for one in ended], runs[0].slo)
    if answer:
        headline, second = answer[0], translate(". ").join(answer[1:])
    figures = [figure for section in charts for figure in section.figures]
    script, specs = script_of_page(), pack({figure.id: figure.spec for figure in figures})
    data = pack_runs(runs, _room(script, specs, charts))
    manifest = {
        "format": FORMAT,
        "charts": [figure.id for figure in figures],
        "columns": [column.key for column in COLUMNS],
        "rows": table,
        "runs": [
            {"label": run.label, "slo": run.slo.model_dump(), "summary": plain(run.figures)}
            | {"data": {name: one.as_dict() for name, one in tables.items()}}
            for run, tables in zip(runs, data, strict=True)
        ],
    }
    checked, check_note = self_check(runs)
    first = runs[0].trace.meta
    shown = environment if environment is not None else {k: v for k, v in first.items() if k not in _STORE_KEYS}
    page = template("report.html.j2").render(
        tag=TAGS[spoken()],
        title=title,
        question=translate(question),
        origins=list(dict.fromkeys(origin(run.trace) for run in runs)),
        written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        version=__version__,
        headline=headline,
        second=second,
        tiles=tiles,
        cut=_cut(runs),
        columns=COLUMNS,
        table=[(run, cells(row, table)) for run, row in zip(runs, table, strict=True)],
        slo=runs[0].slo,
        pid=_one_engine(table),
        sections=charts,
        environment=sections(shown),
        environment_of=runs[0].label if environment is None and len(runs) > 1 else "",
        is_long=is_long,
        missing=_missing(runs),
        definitions=definitions(),
        verdicts=verdicts(runs),
        intervals=intervals(compared, [run.label for run in runs]),
        self_check=checked,
        check_note=check_note,
        commands=serve_commands(runs),
        reproduce=redact(reproduce or again(runs)),
        left_out=_left_out(runs, data),
        manifest=manifest,
        specs=specs,
        style=Markup(style()),  # noqa: S704  # ours, not a person's
        script=Markup(script),  # noqa: S704
        policy=policy(script),
    )
    return place(path, page, verify_report)


def _check(runs: Sequence[ReportRun], rows: Sequence[Mapping[str, Any]] | None) -> None:
    labels = [run.label for run in runs]
    if not labels:
        raise ConfigError("runs of a report", "none", "at least one run", "pass a finished run")
    if len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise ConfigError("label of a run in a report", twice, "a label of its own for each run", "rename one")
    if rows is not None and len(rows) != len(runs):
        raise ConfigError("rows of a report", len(rows), f"{len(runs)}, one for each run", "pass a row for each run")


def _room(script: str, specs: str, charts: Sequence[Section]) -> int:
    """Bytes that are left for the tables."""
    drawn = sum(len(figure.svg.encode()) for section in charts for figure in section.figures)
    return max(_LEAST_DATA, MOST_BYTES - _AROUND - len(script.encode()) - len(specs) - drawn)


def _left_out(runs: Sequence[ReportRun], data: Sequence[Mapping[str, Packed]]) -> list[tuple[str, str, str, str]]:
    """Tables of which the page does not hold all rows: run, table, rows here, rows in the run."""
    return [
        (run.label, name, f"{one.rows:,}", f"{one.of:,}")
        for run, tables in zip(runs, data, strict=True)
        for name, one in tables.items()
        if one.rows < one.of
    ]


def _one_engine(table: Sequence[Mapping[str, Any]]) -> int | None:
    """The engine's pid when all rows of several came from one engine."""
    pids = {row.get("engine_pid") for row in table}
    return next(iter(pids)) if len(pids) == 1 and len(table) > 1 else None


def _ended(runs: Sequence[ReportRun]) -> list[int]:
    """Places of the runs that the headline may compare: those that came to their end; all where none did.

    The longest gap of a run that was cut off is that of what was played, not of the setting.
    """
    ended = [place for place, run in enumerate(runs) if run.trace.meta.get("status") not in (*_CUT, "cancelled")]
    return ended or list(range(len(runs)))


def _cut(runs: Sequence[ReportRun]) -> list[str]:
    """Of each run that did not come to its end: why, as it was recorded."""
    ends = [(run.label, run.trace.meta.get("status"), run.trace.meta.get("reason")) for run in runs]
    return [
        translate("“{label}” is not whole ({status}): {reason}", label=label, status=translate(status), reason=reason)
        for label, status, reason in ends
        if status in _CUT and reason
    ]


def _missing(runs: Sequence[ReportRun]) -> list[tuple[str, str, str]]:
    """What was not measured: column, in which share of rows (worst run), and why."""
    worst: dict[str, tuple[float, str]] = {}
    for run in runs:
        for column, entry in run.figures.get("nulls", {}).items():
            worst[column] = max(worst.get(column, (0.0, "")), (float(entry["share"]), str(entry["why"])))
    return [(column, f"{share:.1%}", why) for column, (share, why) in sorted(worst.items())]
