"""``workbench compare``: two settings in turn on one engine until the verdict is clear, or two folders of runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import pandas as pd
import typer
from rich.table import Table

from workbench import console
from workbench.cli.options import JsonFlag, RunsRoot, Seed, StartUp, start_up_fields
from workbench.errors import InputError, StoreError
from workbench.i18n import translate
from workbench.origin import in_pieces
from workbench.session import Workbench
from workbench.tune.compare import (
    MEASURES,
    PRIMARY,
    RESOLVE,
    ROUNDS,
    Comparing,
    Comparison,
    Playing,
    RecordedComparison,
    compare_recorded,
)
from workbench.workload.scenario import load_scenario

compare_verb = typer.Typer()

_SCENARIO, _ALL = "chat_and_long", 100.0
_SIDE = "a setting such as budget=256,chunk=128,policy=qos, defaults for none, or a folder of recorded runs"


@compare_verb.command("compare")
def compare_command(
    a: Annotated[str, typer.Argument(help=f"{_SIDE[0].upper()}{_SIDE[1:]}.")],
    b: Annotated[str, typer.Argument(help="The same to compare it with.")],
    scenario: Annotated[str, typer.Option(help="A scenario's name (data/scenarios) or a YAML file.")] = _SCENARIO,
    rounds: Annotated[int, typer.Option(help="Most rounds; one is a play of each setting.")] = ROUNDS,
    primary: Annotated[str, typer.Option(help=f"What the verdict is about: {', '.join(MEASURES)}.")] = PRIMARY,
    resolve: Annotated[
        float, typer.Option(help="Least difference worth knowing, in per cent; no more rounds when it is ruled out.")
    ] = 100 * RESOLVE,
    all_rounds: Annotated[bool, typer.Option("--all-rounds", help="Play all rounds, clear or not.")] = False,
    seed: Seed = None,
    runs: RunsRoot = None,
    start_up: StartUp = None,
    chart: Annotated[Path | None, typer.Option(help="Also draw the ratios as SVG here.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Compare two settings: A/B/A/B on one engine by chance, the same workload in each pair, with intervals."""
    if chart is not None and (chart.is_dir() or not chart.absolute().parent.is_dir()):  # before rounds are played
        raise InputError("--chart", chart, "a file in a folder that is there", "make the folder, or name another file")
    if not 0 < resolve < _ALL:
        expected = "per cent, above 0 and below 100"
        raise InputError("--resolve", f"{resolve:g}", expected, "give the least difference worth knowing, such as 5")
    folders = [bool(one.strip()) and Path(one).is_dir() for one in (a, b)]
    if all(folders):
        show(compare_recorded(a, b, primary=primary), as_json, chart)
        return
    if any(folders):
        raise InputError("A and B", f"{a} and {b}", "two settings, or two folders of runs", "record a run of the other")
    chosen = load_scenario(scenario)
    bench = Workbench.of(chosen, runs=runs, **start_up_fields(start_up))
    comparing = Comparing(
        bench, a, b, chosen, rounds=rounds, primary=primary, resolve=resolve / 100, seed=seed
    )  # before the engine: a wrong option should not cost a start
    for concern in comparing.comparison.concerns:
        console.err.print(translate(concern), highlight=False, soft_wrap=True)
    try:
        with bench, console.bars() as progress:
            bench.start(console.engine_start(progress))
            console.say_engine(bench)
            task = progress.add_task(translate("rounds"), total=rounds, note="")

            def tell(now: Playing) -> None:
                done = len(now.comparison.rounds)
                progress.update(task, completed=done, note=translate(now.what))
                while not now.run.wait(0.1):
                    progress.update(task, note=translate(now.what))

            comparing.run(tell, adaptive=not all_rounds)
            found = comparing.comparison
            progress.update(task, completed=len(found.rounds), note=translate(found.verdict.kind))
    finally:  # an interruption shows what the rounds so far say
        if comparing.comparison.rounds:
            show(comparing.comparison, as_json, chart)


def show(found: Comparison | RecordedComparison, as_json: bool, chart: Path | None = None) -> None:
    """Print a comparison, and draw it if asked for.

    Raises:
        StoreError: the chart cannot be written.
    """
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
    else:
        say = console.out.print
        say(translate(found.verdict.words), style="bold", highlight=False, soft_wrap=True)
        for line in _about(found):
            say(line, highlight=False, soft_wrap=True)
        if len(found.table):  # one round has no ratio with an interval yet
            title = translate("{one}, {other}", one=found.title, other=in_pieces(found.origin))
            say(measures_table(found.table, title))
    if chart is not None:
        _draw(found, chart)


def _draw(found: Comparison | RecordedComparison, chart: Path) -> None:
    from workbench.report.svg import static_svg  # here, since Altair takes two seconds to import
    from workbench.ui.charts.comparison import comparison_chart
    from workbench.ui.charts.localise import localise

    drawn = localise(comparison_chart(found).to_dict())
    drawn.pop("$schema", None)  # an address
    try:
        chart.write_text(static_svg(drawn, "comparison", alone=True), encoding="utf-8")
    except OSError as error:
        raise StoreError(f"--chart {chart}: {error.strerror or error}; choose a file that can be written") from None


def measures_table(table: pd.DataFrame, title: str) -> Table:
    """The measures of a comparison in 120 columns of text.

    Args:
        table: as :attr:`workbench.tune.compare.Comparison.table` has it.
        title: above it; must say where the figures come from.
    """
    shown = console.plain_table(title, pad_edge=True)
    shown.add_column(translate("measure"), no_wrap=True)
    for heading in ("A", "B", "A / B", translate("interval"), translate("level")):
        shown.add_column(heading, justify="right", no_wrap=True)
    shown.add_column(translate("better"), no_wrap=True)
    shown.add_column("", no_wrap=True)
    for name, row in table.iterrows():
        cells: dict[str, Any] = row.to_dict()
        shown.add_row(
            translate("{one}, {other}", one=translate(MEASURES[str(name)].words), other=translate(cells["unit"])),
            console.cell(float(cells["a"])),
            console.cell(float(cells["b"])),
            f"{cells['ratio']:.3f}",
            *_interval(cells),
            cells["better"],
            translate(cells["part"]),
        )
    return shown


def _interval(cells: dict[str, Any]) -> tuple[str, str]:
    """A ratio's interval and its level; of an exact one there is neither."""
    if cells["level"] == 1.0:
        return translate("exact"), ""
    return f"{cells['low']:.3f} {translate('to')} {cells['high']:.3f}", f"{100 * cells['level']:.4g} %"


def _about(found: Comparison | RecordedComparison) -> list[str]:
    if isinstance(found, RecordedComparison):
        return [translate(one) for one in found.concerns]
    said = [
        translate(
            "A: {a}   B: {b}   {played} rounds of {planned}",
            a=found.a.name,
            b=found.b.name,
            played=len(found.rounds),
            planned=found.planned,
        )
    ]
    if found.stopped:
        said.insert(0, translate("stopped: this is what the rounds until then say; their runs are kept"))
    said.append(
        translate(
            "the verdict is about the primary measure at any number of looks; the others are exploratory, 95 % each"
        )
    )
    return [*said, *map(translate, dict.fromkeys(found.concerns))]
