"""What ``workbench tune`` says where there is no terminal, by a clock of the test's own."""

from __future__ import annotations

import io

from rich.console import Console

from workbench.cli.tune_bars import teller
from workbench.progress_lines import ProgressLines
from workbench.tune.tune import Now


def test_each_stage_ends_with_its_own_time_and_count():
    now, file = [0.0], io.StringIO()
    progress = ProgressLines(Console(file=file, width=80), clock=lambda: now[0])
    tell = teller(progress)
    for second, told in (
        (0, Now("simulation", 0, 96, "a")),
        (5, Now("simulation", 95, 96, "b")),
        (8, Now("search", 0, 40, "c")),
        (8, Now("engine", 0, 0, "importing vLLM")),
        (12, Now("engine", 0, 0, "ready")),
        (30, Now("search", 7, 40, "c")),
        (32, Now("beyond", 1, 0, "d")),
        (36, Now("confirmation", 0, 6, "e")),
        (90, Now("confirmation", 6, 6, "")),
        (90, Now("over", 7, 7, "no progress")),
    ):
        now[0] = second
        tell(told)
    now[0] = 500.0
    progress.stop()
    assert file.getvalue().splitlines() == [
        "simulation: 0 of 96",
        "simulation: 96 of 96 (0:08)",
        "search: 0 of 40",
        "engine: …",
        "engine: ready (0:04)",
        "search: 7 of 40 c (0:22)",
        "search: 7 of 7 (0:24)",
        "beyond a limit: …",
        "beyond a limit: d (0:04)",
        "confirmation: 0 of 6",
        "confirmation: 6 of 6 (0:54)",
    ]
