"""``workbench selftest``: is the client to be trusted on this machine?"""

from __future__ import annotations

import json
from typing import Annotated

import typer
from rich.progress import TaskID

from workbench import console
from workbench.cli.options import JsonFlag

meter_verb = typer.Typer()


@meter_verb.command("selftest")
def selftest_command(
    streams: Annotated[int, typer.Option(help="Streams at once, in the loads; 0 leaves them out.", min=0)] = 200,
    rate: Annotated[float, typer.Option(help="Events a second, of each stream.", min=1.0, max=1000.0)] = 50.0,
    seconds: Annotated[float, typer.Option(help="That a stream of a load lasts.", min=0.5, max=600.0)] = 4.0,
    as_json: JsonFlag = False,
) -> None:
    """Hold the client against streams whose token times are known; exit code 1: do not trust it here."""
    from workbench.meter.selftest import selftest  # here: help needs neither

    with console.bars() as progress:
        tasks: dict[str, TaskID] = {}

        def tell(what: str, share: float) -> None:
            if what not in tasks:
                tasks[what] = progress.add_task(what, total=100, note="% of tokens")
            progress.update(tasks[what], completed=round(100 * share))

        found = selftest(streams, rate, seconds, tell)
        for task in tasks.values():
            progress.update(task, completed=100)
    rows = [case.as_dict() for case in found.cases]
    if as_json:
        typer.echo(json.dumps({"trusted": found.trusted, "load_per_core": found.load, "cases": rows}, indent=2))
    else:
        shown = [
            {
                "case": row["case"],
                "tokens": f"{row['tokens_truth']:,} / {row['tokens_ours']:,}",
                **{name: _ms(row[key]) for name, key in _TIMES.items()},
                "verdict": row["verdict"],
            }
            for row in rows
        ]
        columns = ["case", "tokens", *_TIMES, "verdict"]
        console.out.print(
            console.frame_table(shown, columns, "client against truth · tokens truth / ours · errors in ms")
        )
        if found.trusted:
            said = "trusted: every token is there, in order, and its time is good"
        elif found.counts:
            said = "not to be trusted here and now: tokens are right, times are not; close other programs and try again"
        else:
            said = "not to be trusted: tokens or ends are wrong; please report it"
        console.out.print(f"{said} (load {found.load:.1f} a core)", highlight=False, soft_wrap=True)
    if not found.trusted:
        raise typer.Exit(1)


_TIMES = {
    "gap P50": "gap_error_p50_ms",
    "P99": "gap_error_p99_ms",
    "max": "gap_error_max_ms",
    "TTFT": "ttft_error_p99_ms",
}


def _ms(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.3f}"
