"""What a plan has found: the capacity of every setting, the best of them, and all of it as a table or plain data."""

from __future__ import annotations

import json
from typing import Any

import pandas as pd

from workbench.i18n import phrase
from workbench.planning.asked import Asked
from workbench.planning.loads import Load
from workbench.planning.rows import Row


class Plan:
    """What was found; it grows while it is made, so that what there is can be shown at any moment.

    Attributes:
        asked: the question.
        load: the traffic that is played.
        cells: a row for each budget and chunk.
        policies: a row for each policy at the best of these.
        refused: why a policy was not played.
        plays: played in all.
        stopped: whether somebody stopped it.
        done: whether it came to its end.
    """

    def __init__(self, asked: Asked, load: Load) -> None:
        self.asked, self.load = asked, load
        self.cells: list[Row] = []
        self.policies: list[Row] = []
        self.refused: dict[str, str] = {}
        self.plays = 0
        self.stopped = self.done = False

    @property
    def best(self) -> Row | None:
        """The setting with the highest capacity; of equals the first, policies last; None where none has any."""
        rows = [row for row in (*self.cells, *self.policies) if row.rate > 0]
        return max(rows, key=lambda row: row.rate) if rows else None

    @property
    def best_cell(self) -> Row | None:
        """The same among budgets and chunks."""
        rows = [row for row in self.cells if row.rate > 0]
        return max(rows, key=lambda row: row.rate) if rows else None

    @property
    def label(self) -> str:
        """Where the figures come from."""
        row = next((row for row in self.cells if row.place is not None), None)
        return row.label if row is not None else "simulated"

    @property
    def hardware(self) -> str:
        """Model and GPUs, in words."""
        config = self.asked.config
        row = next((row for row in self.cells if row.place is not None), None)
        device = row.place.setup.device if row is not None and row.place is not None else None
        return phrase(
            "{model} on {gpus} x {gpu}",
            model=config.model,
            gpus=config.gpus,
            gpu=device.name if device is not None else config.gpu,
        )

    @property
    def why_nothing(self) -> str:
        """Why no setting has a capacity, in a sentence; empty where one has, or nothing was played."""
        found = [row.capacity for row in self.cells if row.capacity is not None]
        return found[-1].reason if found and self.best is None else ""

    @property
    def table(self) -> pd.DataFrame:
        """One row a setting, see :meth:`workbench.planning.rows.Row.figures`; policies come last."""
        return pd.DataFrame(self.rows())

    def rows(self) -> list[dict[str, Any]]:
        """The same as plain data."""
        return [row.figures(self.asked.price, self.asked.need) for row in (*self.cells, *self.policies)]

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain data, ready for JSON."""
        best, asked = self.best, self.asked
        shown = {
            "label": self.label,
            "hardware": self.hardware,
            "scenario": self.load.name,
            "concerns": self.load.concerns,
            "slo": asked.slo.model_dump(),
            "rule": {**asked.rule.model_dump(), "words": asked.rule.words},
            "price_per_gpu_hour": asked.price,
            "need_per_s": asked.need,
            "complete": self.done,
            "plays": self.plays,
            "best": best.figures(asked.price, asked.need) if best is not None else None,
            "why_nothing": self.why_nothing,
            "rows": self.rows(),
            "refused": self.refused,
        }
        plain: dict[str, Any] = json.loads(json.dumps(shown, default=float))
        return plain
