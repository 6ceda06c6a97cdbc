"""What is checked before a study is gone on with: that it is the same, and that nobody else is at it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from workbench.proc import boot_id, pid_space, started
from workbench.store.owner import this_process


def difference(asked: Any, had: Any) -> str:
    """What differs between what was asked for and what a study has, short."""
    if isinstance(asked, Mapping) and isinstance(had, Mapping):
        for name in {**asked, **had}:
            if asked.get(name) != had.get(name):
                return f"{name} {difference(asked.get(name), had.get(name))}"
    return f"{asked} in place of {had}"


def is_run(owner: Mapping[str, Any]) -> bool:
    """Whether the process that has the study still runs on this machine, and is not this one."""
    mine = this_process()
    if not owner or owner == mine or (owner.get("boot"), owner.get("pid_space")) != (boot_id(), pid_space()):
        return False
    return bool(started(owner["pid"]) == owner["start"])
