"""An engine left as it was found, however what is done with it ends: knobs put back, no run left going."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from workbench.plays import Plays

_END_S = 10.0  # for an interrupted run to be on disk


@contextlib.contextmanager
def knobs_put_back(*benches: Plays) -> Iterator[None]:
    """Set the knobs again that were in force.

    Args:
        benches: each may be named twice.
    """
    before = [(bench.engine, bench.engine.knobs) for bench in dict.fromkeys(benches)]
    try:
        yield
    except BaseException:
        with contextlib.suppress(WorkbenchError):  # such as of an engine that died: the first error tells more
            for engine, knobs in before:
                engine.set_knobs(knobs)
        raise
    for engine, knobs in before:
        engine.set_knobs(knobs)


@contextlib.contextmanager
def no_run_left(bench: Plays) -> Iterator[None]:
    """End the run when somebody interrupts; what was measured of it is on disk."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(WorkbenchError):
            bench.stop_load(_END_S)
        raise
