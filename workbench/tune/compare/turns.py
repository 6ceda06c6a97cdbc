"""Whose turn it is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np


def schedule(seed: int) -> Iterator[str]:
    """Orders of the pairs for ever, "AB" or "BA" by chance, each once in every two."""
    rng = np.random.default_rng([seed, 1])
    while True:
        yield from ("AB", "BA") if rng.random() < 0.5 else ("BA", "AB")
