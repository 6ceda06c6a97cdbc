"""Progress where there is no terminal, as in a log of CI or in a pipe: a line now and then in place of bars."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from rich.console import Console
from rich.progress import Progress, Task, TaskID

from workbench.i18n import translate

EVERY_S = 10.0


class ProgressLines(Progress):
    """A line when a task begins, one every ten seconds while something is told of it, and one when it has ended.

    Args:
        console: where the lines go.
        clock: seconds.
    """

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console=console, auto_refresh=False, get_time=clock)
        self._said: dict[TaskID, tuple[float, str]] = {}  # when the last line was written, and what of it may change

    def start(self) -> None:
        """Nothing: there is no screen to keep up to date."""

    def refresh(self) -> None:
        """Nothing, likewise."""

    def stop(self) -> None:
        """Write how far those tasks have come that did not end; a second call writes nothing."""
        with self._lock:
            for task in self.tasks:
                self._say(task)

    def add_task(self, *args: Any, **kwargs: Any) -> TaskID:
        """Begin a task, with a line."""
        with self._lock:
            added = super().add_task(*args, **kwargs)
            self._say(self._tasks[added])
        return added

    def advance(self, task_id: TaskID, advance: float = 1) -> None:
        """Note so many more steps of a task."""
        self.update(task_id, advance=advance)

    def update(self, task_id: TaskID, **changes: Any) -> None:
        """Note what has changed of a task, with a line if it is time for one."""
        with self._lock:
            super().update(task_id, **changes)
            task = self._tasks[task_id]
            if task.finished or self.get_time() >= self._said[task_id][0] + EVERY_S:
                self._say(task)

    def _say(self, task: Task) -> None:
        words = _words(task)
        if self._said.get(task.id, (0.0, ""))[1] == words:
            return
        self._said[task.id] = (self.get_time(), words)
        seconds = int(task.finished_time if task.finished_time is not None else task.elapsed or 0.0)
        took = f" ({seconds // 60}:{seconds % 60:02d})" if seconds or task.finished else ""
        self.console.print(words + took, markup=False, highlight=False, soft_wrap=True)


def _words(task: Task) -> str:
    note = task.fields.get("note") or ""
    count = ""
    if task.total is not None and task.total > 1:
        count = translate("{done:,.0f} of {all:,.0f}", done=task.completed, all=task.total)
    said = " ".join(part for part in (count, note) if part)
    return f"{task.description}{translate(': ')}{said or '…'}"
