"""How far ``workbench tune`` is: one bar a stage, of which each ends when the next one begins."""

from __future__ import annotations

from collections.abc import Callable

from rich.progress import Progress as Bars
from rich.progress import TaskID

from workbench.i18n import marked, translate
from workbench.tune.tune import Now

_NAMES = {"beyond": marked("beyond a limit")}  # where the name of a stage says too little by itself


def teller(progress: Bars) -> Callable[[Now], None]:
    """What a :class:`workbench.tune.tune.Tune` is to tell; an engine's start ends when the engine is ready."""
    open_: dict[str, tuple[TaskID, Now]] = {}

    def end(stage: str) -> None:
        task, now = open_.pop(stage)
        count = now.most if stage == "simulation" else now.done  # a simulation tells of a play before that begins
        progress.update(task, total=count, completed=count, note="" if now.most else translate(now.what))

    def tell(now: Now) -> None:
        if now.stage == "over":
            return
        for stage in [one for one in open_ if now.stage not in (one, "engine")]:
            end(stage)
        if now.stage in open_:
            task = open_[now.stage][0]
        else:
            task = progress.add_task(translate(_NAMES.get(now.stage, now.stage)), total=now.most or None, note="")
        open_[now.stage] = task, now
        progress.update(task, completed=now.done, note=translate(now.what))
        if now.stage == "engine" and now.what == "ready":
            end("engine")

    return tell
