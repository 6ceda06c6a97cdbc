"""The newest run of a folder, read while another process records it. Nothing is written and nothing started."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from workbench.config import SLO
from workbench.errors import WorkbenchError
from workbench.i18n import marked
from workbench.origin import origin_words
from workbench.store import open_run
from workbench.store.compact import KEYS, read_streams
from workbench.store.meta import META, read_meta, status_of
from workbench.tail import Tail
from workbench.trace import TABLES

LOOK_S = 0.5  # between two looks at the disk
_AHEAD_S = 2.0  # the clock goes on for so long without a new row; longer, and it would run ahead of the run
_ORDER = ("requests", "knobs", "steps", "batch", "tokens", "memory", "client", "server")
_CLOCKS = {"steps": ("end_s",), "tokens": ("client_s", "engine_s"), "memory": ("t_s",)}


@dataclass(frozen=True)
class Planned:
    """What of a request is known from its first row."""

    request: str
    class_name: str


class WatchedRun:
    """What the live charts need of a run, from its folder; ends as a whole once it is on disk as Parquet.

    Args:
        folder: of the run.

    Raises:
        WorkbenchError: it is not a run, or cannot be read.
    """

    error = None  # an exception is for who plays the run; its words are in ``reason``

    def __init__(self, folder: Path) -> None:
        self.folder, self.tail = folder, Tail()
        self.meta: Mapping[str, Any] = read_meta(folder)
        self.whole = bool(self.meta.get("compacted"))
        self.revision: Mapping[str, Any] = {}  # the knobs in force
        self._counts = dict.fromkeys(TABLES, 0)
        self._last_s, self._seen = 0.0, time.monotonic()
        self._classes: dict[str, str] = {}
        if self.whole:
            self._take(open_run(folder).tables)
        else:
            self.look()
        self.workload = SimpleNamespace(requests=[Planned(*one) for one in self._classes.items()])

    @property
    def done(self) -> bool:
        """Whether nobody writes it any more."""
        return self.whole or status_of(self.folder, self.meta) != "running"

    @property
    def reason(self) -> str:
        """Why it failed, such as an engine that died; empty of any other run."""
        return str(self.meta.get("reason") or "") if self.meta["status"] == "failed" else ""

    @property
    def slo(self) -> SLO:
        """The latency promise that it is held against."""
        return SLO.model_validate(self.meta.get("slo") or {})

    @property
    def scenario(self) -> str:
        """Name of what is played."""
        return str(self.meta.get("scenario") or "run")

    @property
    def origin(self) -> str:
        """Where its numbers come from."""
        return origin_words(self.meta)

    @property
    def engine_facts(self) -> Mapping[str, Any]:
        """What its engine said of itself."""
        return self.meta.get("engine") or {}

    @property
    def elapsed_s(self) -> float:
        """Seconds since its zero, as far as rows tell."""
        return self._last_s if self.done else self._last_s + min(time.monotonic() - self._seen, _AHEAD_S)

    def look(self) -> None:
        """Read what came since the last look.

        Raises:
            FileNotFoundError: the run has just ended; open it anew.
            WorkbenchError: it cannot be read.
        """
        self.meta = read_meta(self.folder)
        if self.meta.get("compacted"):
            raise FileNotFoundError(self.folder)
        self._take(read_streams(self.folder)[0])

    def _take(self, tables: Mapping[str, pa.Table]) -> None:
        for name in _ORDER:
            table = tables[name]
            fresh = table.slice(self._counts[name]).to_pylist()
            self._counts[name] = table.num_rows
            if not fresh:
                continue
            if name in KEYS:  # told bit by bit: what is missing in one row is in another
                fresh = [{key: value for key, value in row.items() if value is not None} for row in fresh]
            self._note(name, fresh)
            self.tail.put(name, fresh)

    def _note(self, name: str, fresh: list[dict[str, Any]]) -> None:
        if name == "requests":
            self._classes |= {row["request"]: row["class"] for row in fresh if row.get("class")}
        if name == "knobs":
            for row in fresh:
                self.revision = {**self.revision, **row}
        times = [row[column] for row in fresh for column in _CLOCKS.get(name, ()) if row.get(column) is not None]
        if times and max(times) > self._last_s:
            self._last_s, self._seen = max(times), time.monotonic()


class Watched:
    """Stands where the live charts expect a workbench: its run is the newest one of a folder.

    Args:
        root: folder that the teacher's engine records into.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.slo = root, SLO()
        self.engine = SimpleNamespace(label=marked("no run yet"))
        self._run: WatchedRun | None = None
        self._due = 0.0

    @property
    def current_run(self) -> WatchedRun | None:
        """The newest run; none if nothing was played yet. Looks at the disk at most every :data:`LOOK_S` seconds."""
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + LOOK_S
            self._look()
        return self._run

    def _look(self) -> None:
        # Folders sort by time. One that is being made, deleted or is damaged is no run: the last one stays.
        newest = max((path.parent for path in self.root.glob(f"*/{META}") if path.parent.name[:1] != "."), default=None)
        run = self._run
        try:
            if newest is not None and (run is None or newest != run.folder):
                self._run = WatchedRun(newest)
            elif run is not None and not run.whole:
                run.look()
        except FileNotFoundError:
            self._run = self._anew(newest)
        except (WorkbenchError, OSError):
            return

    def _anew(self, folder: Path | None) -> WatchedRun | None:
        try:
            return WatchedRun(folder) if folder is not None else self._run
        except (WorkbenchError, OSError):
            return self._run
