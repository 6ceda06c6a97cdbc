"""Whose turn it is, and an engine left as it was found."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from workbench.errors import WorkbenchError

if TYPE_CHECKING:
    from workbench.plays import Plays


def schedule(seed: int) -> Iterator[str]:
    """Orders of the pairs for ever, "AB" or "BA" by chance, each once in every two."""
    rng = np.random.default_rng([seed, 1])
    while True:
        yield from ("AB", "BA") if rng.random() < 0.5 else ("BA", "AB")


@contextlib.contextmanager
def knobs_put_back(benches: Iterable[Plays]) -> Iterator[None]:
    """Set the knobs again that were in force, however what is done meanwhile ends."""
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
