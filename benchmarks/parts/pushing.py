"""What the charts benchmark runs in the notebook's kernel: a recorded run to the board, ten times a second."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

from benchmarks.parts.replay import Replay
from workbench.config import SLO
from workbench.store import open_run
from workbench.ui.live.board import Board
from workbench.ui.live.figures import LiveFigures
from workbench.ui.live.rows import LiveRows
from workbench.ui.live.specs import live_charts

TICK_S = 0.1
_FIGURES_S = 1.0
_PAST_S = 0.5


class Pushing:
    """Shows a recorded run as if it went on, with as much behind it as the window holds.

    Args:
        folder: of the run.
        window_s: of the charts.
        limit: most rows of a chart.
    """

    def __init__(self, folder: str, window_s: float, limit: int) -> None:
        self.board, self._replay, slo = Board(window_s=window_s), Replay(open_run(Path(folder))), SLO()
        self._rows = LiveRows(window_s, slo, self._replay.streams, limit=limit)
        self._figures = LiveFigures(slo, window_s)
        self._now_s, self._kpis, self._kpis_due = 0.0, self._figures.kpis(0.0), window_s
        self._stop = threading.Event()
        self.board.show(live_charts(slo, self._replay.streams, label="recorded"), {"t0": 0.0, "t1": window_s})
        while self._now_s < window_s:  # in small bites, as a run would have brought it
            self._now_s += _PAST_S
            self._tick()
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Begin to push, and to count."""
        self._began = (time.perf_counter(), time.process_time())
        self._pushes = 0
        self._thread.start()

    def stop(self) -> None:
        """End, and print what it took as JSON."""
        self._stop.set()
        self._thread.join()
        wall, cpu = time.perf_counter() - self._began[0], time.process_time() - self._began[1]
        shown = {
            chart: {name: list(rows) for name, rows in datasets.items()} for chart, datasets in self.board.rows.items()
        }
        print(json.dumps({"cpu_share": cpu / wall, "pushes": self._pushes, "wall_s": wall, "shown": shown}))

    def _work(self) -> None:
        began, start = time.perf_counter(), self._now_s
        while not self._stop.wait(max(0.0, began + (self._pushes + 1) * TICK_S - time.perf_counter())):
            self._now_s = start + time.perf_counter() - began
            self._tick()
            self._pushes += 1

    def _tick(self) -> None:
        for table, rows in self._replay.until(self._now_s):
            self._rows.take(table, rows)
            self._figures.take(table, rows)
        if self._now_s >= self._kpis_due:
            self._kpis_due = self._now_s + _FIGURES_S
            self._kpis = self._figures.kpis(self._now_s)
        status = {"kpis": self._kpis, "badge": "recorded", "state": f"replay, {self._now_s:,.0f} s", "dropped": 0}
        self.board.push(self._rows.changes(self._now_s), status)
