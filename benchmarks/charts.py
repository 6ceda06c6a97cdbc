"""What the live charts cost: a recorded run through the real rows and the real board into JupyterLab and Chromium.

Four charts, ten pushes a second. ``SECONDS`` (60) sets the length, ``SOAK=600`` measures that long, and the growth of
the browser's heap too. ``RUN=/path/of/a/run`` replays that run; without it one of ``chat_and_long`` is recorded first.
``WINDOW_S`` (240) sets the window, ``LIMIT`` (4,000) the most rows of a chart: enough that there are 2,000 points in
each. Then a live engine is started, its budget turned ``CHANGES`` (20) times, and the page reloaded ``RELOADS`` (5)
times in mid-run; ``SECONDS=0`` measures that alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.parts.chromium import chromium
from benchmarks.parts.lab import Lab
from benchmarks.parts.notebook import Notebook
from benchmarks.parts.stats import answer, say
from benchmarks.parts.turning import turn
from workbench.units import MIB

_ROOT = Path(__file__).parents[1]
_BOARD = "document.querySelector('.wb-board').parentElement.__board"
_HEAP_EVERY_S = 5.0


def main() -> None:
    """Replay, watch, print."""
    soak = float(os.environ.get("SOAK", "0"))
    seconds = soak or float(os.environ.get("SECONDS", "60"))
    window_s, limit = float(os.environ.get("WINDOW_S", "240")), int(os.environ.get("LIMIT", "4000"))
    changes, reloads = int(os.environ.get("CHANGES", "20")), int(os.environ.get("RELOADS", "5"))
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        run = None
        if seconds > 0:
            run = Path(os.environ["RUN"]).absolute() if "RUN" in os.environ else _record(folder / "runs")
        path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH", "")]))
        say("starting JupyterLab and Chromium")
        with Lab(folder / "lab", {"PYTHONPATH": path}) as lab, chromium() as browser:
            figures = _replayed(browser, lab, run, window_s, limit, seconds, soak=bool(soak)) if run else {}
            figures |= turn(browser, lab, changes, reloads) if changes or reloads else {}
    answer({"bench": "charts", **figures, "window_s": window_s})


def _replayed(
    browser: Any, lab: Lab, run: Path, window_s: float, limit: int, seconds: float, *, soak: bool
) -> dict[str, Any]:
    """Figures of a recorded run on the charts."""
    cells = [
        f"from benchmarks.parts.pushing import Pushing\npushing = Pushing({str(run)!r}, {window_s}, {limit})",
        "pushing.board",
    ]
    notebook = Notebook(browser, lab, cells)
    figures = _watch(notebook, seconds, soak=soak)
    notebook.close()
    if notebook.complaints:
        raise SystemExit(f"charts: the page complains: {notebook.complaints[:3]}")
    return figures


def _record(runs: Path) -> Path:
    """Record one run on a live engine; returns its folder."""
    say("recording chat_and_long on a live engine")
    command = [sys.executable, "-m", "workbench.cli", "run", "chat_and_long", "--budget", "256", "--runs", str(runs)]
    subprocess.run(command, check=True, stdout=sys.stderr)
    return next(path for path in runs.iterdir() if (path / "run.json").exists())


def _watch(notebook: Notebook, seconds: float, *, soak: bool) -> dict[str, Any]:
    page = notebook.page
    notebook.run(0)
    notebook.run(1)
    page.wait_for_function(f"() => {_BOARD}.stats.drawn > 0")
    devtools = page.context.new_cdp_session(page)
    notebook.execute("pushing.start()")
    say(f"pushing for {seconds:g} s")
    page.wait_for_timeout(3000)  # not counted: code is compiled
    before = page.evaluate(f"() => {{ {_BOARD}.stats.latencies.length = 0; return {_BOARD}.stats.drawn; }}")
    began, heap = time.perf_counter(), []
    latencies: list[float] = []
    while (gone := time.perf_counter() - began) < seconds:
        page.wait_for_timeout(1000 * min(_HEAP_EVERY_S, seconds - gone))
        latencies += page.evaluate(f"() => {_BOARD}.stats.latencies.splice(0)")
        if soak:
            devtools.send("HeapProfiler.collectGarbage")
            heap.append(float(devtools.send("Runtime.getHeapUsage")["usedSize"]))
    drawn, wall = page.evaluate(f"() => {_BOARD}.stats.drawn") - before, time.perf_counter() - began
    kernel = json.loads(notebook.execute("pushing.stop()"))
    page.wait_for_timeout(1000)
    stats, held = page.evaluate(f"() => [{_BOARD}.stats, {_BOARD}.ids()]")
    return {
        "latency_p50_ms": float(np.percentile(latencies, 50)),
        "latency_p95_ms": float(np.percentile(latencies, 95)),
        "latency_max_ms": float(np.max(latencies)),
        "rows_lost": abs(stats["rowsLost"]) + _differ(kernel["shown"], held),
        "holes": stats["holes"],
        "kernel_cpu_share": kernel["cpu_share"],
        "updates_per_s": drawn / wall,
        "pushes_per_s": kernel["pushes"] / kernel["wall_s"],
        "points": {chart: sum(map(len, datasets.values())) for chart, datasets in held.items()},
        "heap_growth": _growth(heap) if soak else None,
        "heap_mib": heap[-1] / MIB if soak else None,
        "seconds": seconds,
    }


def _differ(kernel: Mapping[str, Mapping[str, list[int]]], page: Mapping[str, Mapping[str, list[int]]]) -> int:
    """Rows that only the kernel or only the page shows."""
    return sum(
        len(set(kernel.get(chart, {}).get(name, [])) ^ set(page.get(chart, {}).get(name, [])))
        for chart in {*kernel, *page}
        for name in {*kernel.get(chart, {}), *page.get(chart, {})}
    )


def _growth(heap: list[float]) -> float:
    """Mean of the last third over that of the middle third."""
    third = len(heap) // 3
    return float(np.mean(heap[2 * third :]) / np.mean(heap[third : 2 * third]))


if __name__ == "__main__":
    main()
