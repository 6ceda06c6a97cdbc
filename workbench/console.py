"""What the command line shows while it works: progress on stderr, results on stdout."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text

from workbench.i18n import marked, translate
from workbench.origin import in_pieces
from workbench.printable import printable
from workbench.progress_lines import ProgressLines

if TYPE_CHECKING:  # a table needs neither an engine nor pandas
    from workbench.engine.protocol import Progress as Tell
    from workbench.run import Run
    from workbench.session import Workbench
    from workbench.workload.scenario import Setting

_PIPE_WIDTH = 120  # columns where there is no terminal to ask
_SHORT = {
    "long_ttft_s": marked("long TTFT s"),
    "gap_p50_ms": marked("gap P50 ms"),
    "gap_p99_ms": "P99",
    "gap_max_ms": marked("max"),
    "stalls": marked("stalls"),
    "peak_activation_mib": marked("peak MiB"),
}
_FLOOR = "floor_s"  # of half of the TTFTs: the larger one of those by compute and by bandwidth
_CLASS_COLUMNS = {  # heading, and digits after the point
    "requests": ("\nn", 0),
    "ttft_p50_s": ("TTFT\nP50 s", 2),
    "ttft_p99_s": ("\nP99", 2),
    "gap_p50_ms": (marked("gap\nP50 ms"), 0),
    "gap_p99_ms": ("\nP99", 0),
    "gap_max_ms": (marked("\nmax"), 0),
    "stalls": (marked("\nstalls"), 0),
    "goodput_per_s": (marked("good\n1/s"), 2),
    "preemptions": (marked("pre-\nempted"), 0),
    "recomputed_tokens": (marked("recom-\nputed"), 0),
    "mfu": ("\nMFU", 3),
    _FLOOR: (marked("floor\ns"), 3),
}

_OF_PREEMPTION = ("preemptions", "recomputed_tokens")


class _Plain(Console):
    """A console for other people's names of models, scenarios and runs: "[/x]" and ":x:" in one are those letters.

    What would move the cursor is a question mark; the escape sequences of Rich itself are not texts.
    """

    def __init__(self, **how: Any) -> None:
        super().__init__(markup=False, emoji=False, **how)

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(printable(text), **how)


class _Words(TextColumn):
    """A column of a bar with other people's names in it."""

    def render(self, task: Task) -> Text:
        words = super().render(task)
        words.plain = printable(words.plain)
        return words


err = _Plain(stderr=True)
out = _Plain() if Console().is_terminal else _Plain(width=_PIPE_WIDTH)


class _Bars(Progress):
    """Bars that take no line of the screen before there is the first of them, so that an error may come first."""

    def add_task(self, *args: Any, **kwargs: Any) -> TaskID:
        self.start()
        return super().add_task(*args, **kwargs)

    def stop(self) -> None:
        if self.live.is_started:
            super().stop()


@contextmanager
def bars() -> Iterator[Progress]:
    """Progress bars that stay on screen; where there is none, lines at a rate that a log can bear."""
    progress = _bars() if err.is_terminal else ProgressLines(err)
    try:
        yield progress
    finally:
        progress.stop()


def _bars() -> Progress:
    return _Bars(
        SpinnerColumn(),
        _Words("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        _Words("{task.fields[note]}", style="dim", markup=False),
        console=err,
        refresh_per_second=5,
    )


def engine_start(progress: Progress) -> Tell:
    """A bar for an engine's start, from its first word on; it has no length, since nobody knows how long one takes."""
    tasks: list[TaskID] = []

    def tell(_elapsed: float, what: str) -> None:
        ready = what == "ready"
        if not tasks:
            tasks.append(progress.add_task(translate("engine start"), total=None, note=""))
        progress.update(tasks[0], note=translate(what), total=1 if ready else None, completed=1 if ready else 0)

    return tell


def say_engine(bench: Workbench) -> None:
    """Of a simulated engine: what it is, how good its step times are, and what memory a step has."""
    from workbench.simulate.engine import SimulatedEngine  # here: whoever has one has imported it

    engine = bench.engine
    if not isinstance(engine, SimulatedEngine) or engine.setup is None:
        return
    setup, config = engine.setup, engine.config
    where = (
        f"{config.gpus} x {setup.device.name}" if setup.device is not None else translate("this machine's processor")
    )
    said = translate(
        "simulated · {label}: {model} on {where}, {blocks:,} KV blocks of {size}.",
        label=in_pieces(setup.label),
        model=config.model,
        where=where,
        blocks=setup.blocks,
        size=setup.block_size,
    )
    if setup.memory is not None:
        budget = config.max_num_batched_tokens
        said += f" {setup.memory.beside(budget, budget, config.max_model_len)}"
    err.print(said, highlight=False, soft_wrap=True)


def follow(progress: Progress, setting: Setting | None, run: Run) -> None:
    """Show a run's output tokens as they arrive, until it has ended."""
    done, total = run.progress
    task = progress.add_task(setting.name if setting else translate("run"), total=total, note=translate("tokens"))
    while not run.wait(0.1):
        done, _ = run.progress
        progress.update(task, completed=done, note=run.trouble or translate("tokens"))
    progress.update(task, completed=run.progress[0], note=translate("recorded"))


def plain_table(title: str, *, pad_edge: bool = False, **how: Any) -> Table:
    """An empty table as the command line has them: a title to the left, a rule below the headings, no frame.

    Args:
        title: above it.
        pad_edge: a space on either side.
        **how: more of Rich's arguments.
    """
    return Table(
        title=title,
        title_justify="left",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=pad_edge,
        **how,
    )


def settings_table(rows: Sequence[Mapping[str, Any]], title: str) -> Table:
    """The comparison table of a sweep: the report's columns and digits, in 80 columns of text."""
    from workbench.report.table import COLUMNS  # here: whoever has rows has imported it

    table = plain_table(title)
    figures = [column for column in COLUMNS if column.key in _SHORT]
    knobs = [column for column in COLUMNS if column.key in ("budget", "chunk", "policy")]
    knobs.sort(key=lambda column: ("budget", "chunk", "policy").index(column.key))
    names = [" / ".join(column.text(row.get(column.key)) for column in knobs) for row in rows]
    differ = len(set(names)) == len(names)  # else they differ in other knobs, which a setting's name tells
    names_of = " / ".join(map(translate, ("budget", "chunk", "policy")))
    table.add_column(names_of if differ else translate("setting"), no_wrap=True)
    for column in figures:
        table.add_column(translate(_SHORT[column.key]), justify="right", no_wrap=True)
    for row, name in zip(rows, names, strict=True):
        table.add_row(
            name if differ else str(row.get("setting")), *(column.text(row.get(column.key)) for column in figures)
        )
    return table


def classes_table(rows: Sequence[Mapping[str, Any]], title: str) -> Table:
    """The table of a comparison of policies: one row a class under each policy, in 120 columns of text.

    Columns of which nothing is known are left out, and those of preemptions where there was none.
    """
    rows = [{**row, _FLOOR: _floor(row)} for row in rows]
    shown = {column: of for column, of in _CLASS_COLUMNS.items() if _tells(rows, column)}
    table = plain_table(title, collapse_padding=True)
    table.add_column("\n" + translate("policy"))  # the only one that wraps where there is no room
    table.add_column("\n" + translate("class"), no_wrap=True)
    for heading, _ in shown.values():
        table.add_column(translate(heading), justify="right", no_wrap=True)
    before = None
    for row in rows:
        policy = row["policy"]
        if before not in (None, policy):
            table.add_section()
        figures = (_rounded(row.get(column), digits) for column, (_, digits) in shown.items())
        table.add_row("" if policy == before else str(policy), str(row["class"]), *figures)
        before = policy
    return table


def frame_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], title: str = "") -> Table:
    """A plain table of dicts."""
    table = Table(title=title or None, title_justify="left", header_style="bold")
    for column in columns:
        table.add_column(column.replace("_", " "), overflow="fold")
    for row in rows:
        table.add_row(*(cell(row.get(column)) for column in columns))
    return table


def _floor(row: Mapping[str, Any]) -> float | None:
    """The larger of the floors that are known."""
    known = [row[name] for name in ("compute_floor_s", "bandwidth_floor_s") if cell(row.get(name)) != cell(None)]
    return max(known, default=None)


def _tells(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    """Whether a column is worth its place."""
    values = [row.get(column) for row in rows if cell(row.get(column)) != cell(None)]
    return any(values) if column in _OF_PREEMPTION else bool(values)


def _rounded(value: Any, digits: int) -> str:
    return cell(None) if cell(value) == cell(None) else f"{value:,.{digits}f}"


def cell(value: Any) -> str:
    """A figure as people write it; what was not measured is n/a."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return translate("n/a")
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
