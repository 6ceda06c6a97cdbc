"""Memory of processes while a load goes on: a reading a second, and how much of it grew."""

from __future__ import annotations

import statistics
import threading
from collections.abc import Mapping
from contextlib import suppress

import psutil

from workbench.units import MIB

EVERY_S = 1.0
WARM_S = 60.0  # code is loaded, rings fill


class Memory:
    """Reads the resident memory of processes until it is stopped.

    Args:
        pids: name → process.
    """

    def __init__(self, pids: Mapping[str, int]) -> None:
        self._processes = {name: psutil.Process(pid) for name, pid in pids.items()}
        self.rss: dict[str, list[float]] = {name: [] for name in pids}  # MiB
        self.pss: dict[str, list[float]] = {name: [] for name in pids}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="memory of the load", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Read no more."""
        self._stop.set()
        self._thread.join()

    def peak(self, name: str, since: int = 0) -> float:
        """Most resident memory, MiB, from reading number ``since`` on."""
        return max(self.rss[name][since:], default=0.0)

    def _work(self) -> None:
        while not self._stop.wait(EVERY_S):
            for name, process in self._processes.items():
                with suppress(psutil.Error):
                    held = process.memory_full_info()
                    self.rss[name].append(held.rss / MIB)
                    self.pss[name].append(held.pss / MIB)


def growth(readings: list[float]) -> float | None:
    """Median of the last minute over that of the minute after the warm-up, MiB; of thirds where there are no three.

    None: there are too few readings to tell.
    """
    part = min(int(WARM_S / EVERY_S), len(readings) // 3)
    if not part:
        return None
    return statistics.median(readings[-part:]) - statistics.median(readings[part : 2 * part])


def last(readings: list[float]) -> float:
    """Median of the last minute, or third; MiB."""
    part = max(1, min(int(WARM_S / EVERY_S), len(readings) // 3))
    return statistics.median(readings[-part:])
