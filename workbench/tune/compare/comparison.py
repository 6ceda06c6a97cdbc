"""A comparison of two settings as data: its rounds, the ratio of each measure, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from workbench.i18n import phrase
from workbench.tune.compare.bootstrap import Estimate, of_pairs
from workbench.tune.compare.measures import COUNTED, MEASURES, PRIMARY, column, measure
from workbench.tune.compare.spending import FIRST_LOOK, at_look
from workbench.tune.compare.verdict import Verdict, decide
from workbench.tune.goal import Objective
from workbench.workload.setting import Setting

EXPLORATORY = 0.05  # chance that the interval of one measure that is not the primary one misses


@dataclass(frozen=True)
class Round:
    """One play of each setting, one after the other, of the same seeded workload.

    Attributes:
        number: from 0.
        seed: of the workload.
        order: "AB" or "BA".
        a: measures of the play of A, by name; also ``failed``.
        b: those of B.
        from_s: what came before in either play is left out; 0 leaves out nothing.
        runs: folders of the two plays, A's first.
    """

    number: int
    seed: int
    order: str
    a: Mapping[str, float]
    b: Mapping[str, float]
    from_s: float = 0.0
    runs: tuple[str, str] = ("", "")

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "round": self.number,
            "seed": self.seed,
            "order": self.order,
            "from_s": self.from_s,
            "a": dict(self.a),
            "b": dict(self.b),
            "runs": list(self.runs),
        }


@dataclass
class Comparison:
    """Two settings and what the rounds so far say of them; it grows while it is played.

    Attributes:
        a: the first setting.
        b: the second.
        scenario: name of what is played.
        planned: most rounds.
        primary: name of the measure that the verdict is about; the others are exploratory.
        resolve: least difference worth knowing, such as 0.05.
        alpha: chance that a difference is found where there is none, over all looks.
        origin: where the numbers come from.
        rounds: in the order they were played.
        warm_up: plays before the first round, which count for nothing.
        stopped: whether somebody stopped it.
        concerns: what a reader should know of how it went.
    """

    a: Setting
    b: Setting
    scenario: str
    planned: int
    primary: str = PRIMARY
    resolve: float = 0.05
    alpha: float = 0.05
    origin: str = ""
    rounds: list[Round] = field(default_factory=list)
    warm_up: int = 0
    stopped: bool = False
    concerns: list[str] = field(default_factory=list)

    @property
    def measure(self) -> Objective:
        """The primary measure."""
        return measure(self.primary)

    @property
    def title(self) -> str:
        """What is compared, and on which load."""
        return phrase("{a} against {b}, {scenario}", a=self.a.name, b=self.b.name, scenario=self.scenario)

    @property
    def same(self) -> bool:
        """Whether both settings are the same: then any difference is the machine's."""
        return self.a.given == self.b.given

    @property
    def first_look(self) -> int:
        """Rounds before the first look."""
        return min(FIRST_LOOK, max(2, self.planned))

    @property
    def estimates(self) -> dict[str, Estimate]:
        """A over B, by measure; what fewer than two rounds have is left out.

        The primary measure's interval holds at every look together, those of the others each for itself.
        """
        found = {}
        for name in MEASURES:
            alpha = at_look(len(self.rounds), self.planned, self.alpha) if name == self.primary else EXPLORATORY
            one = of_pairs(*self._columns(name), alpha=alpha or EXPLORATORY, counted=name in COUNTED)
            if one is not None:
                found[name] = one
        return found

    @property
    def verdict(self) -> Verdict:
        """What may be said by the primary measure now."""
        return self._verdict(self.estimates)

    @property
    def table(self) -> pd.DataFrame:
        """One row a measure that was measured.

        Columns: ``unit``, ``a`` and ``b`` (geometric means over the rounds; means of what is counted), ``ratio`` (A /
        B), ``low``, ``high``, ``level`` (of the interval), ``rounds`` (that have it), ``better`` ("A", "B" or "", by
        the interval), ``part`` ("primary" or "exploratory"). The index is ``measure``.
        """
        return self._table(self.estimates)

    @property
    def against(self) -> list[str]:
        """Exploratory measures, in words, by which the setting that the verdict is against is better, by ``resolve``.

        One figure seldom tells all: a P99 of all gaps can miss the one huge gap that a long prompt makes.
        """
        estimates = self.estimates
        kind = self._verdict(estimates).kind
        if kind not in ("A better", "B better"):
            return []
        other = "B" if kind == "A better" else "A"
        return [
            MEASURES[name].words
            for name, one in estimates.items()
            if better(name, one) == other and abs(one.log) > math.log1p(self.resolve)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as JSON takes it."""
        estimates = self.estimates
        verdict = self._verdict(estimates)
        rows = self._table(estimates).reset_index().to_dict(orient="records")
        return {
            "scenario": self.scenario,
            "origin": self.origin,
            "a": {"name": self.a.name, **self.a.given},
            "b": {"name": self.b.name, **self.b.given},
            "same": self.same,
            "primary": self.primary,
            "verdict": {"kind": verdict.kind, "words": verdict.words, "more_rounds": verdict.more},
            "against": self.against,
            "measures": [
                {
                    key: None if isinstance(value, float) and not math.isfinite(value) else value
                    for key, value in row.items()
                }
                for row in rows
            ],
            "rounds": [one.as_dict() for one in self.rounds],
            "planned": self.planned,
            "warm_up_plays": self.warm_up,
            "resolve": self.resolve,
            "alpha": self.alpha,
            "stopped": self.stopped,
            "concerns": list(self.concerns),
        }

    def _columns(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        return column([one.a for one in self.rounds], name), column([one.b for one in self.rounds], name)

    def _verdict(self, estimates: Mapping[str, Estimate]) -> Verdict:
        return decide(estimates.get(self.primary), self.measure, self.resolve, len(self.rounds), self.first_look)

    def _table(self, estimates: Mapping[str, Estimate]) -> pd.DataFrame:
        values = {name: self._columns(name) for name in estimates}
        return table_of(estimates, values, self.primary)


def table_of(
    estimates: Mapping[str, Estimate], values: Mapping[str, Sequence[np.ndarray]], primary: str
) -> pd.DataFrame:
    """The table of :attr:`Comparison.table`.

    Args:
        estimates: by measure.
        values: by measure, those of A and those of B.
        primary: name of the primary measure.
    """
    rows = []
    for name, one in estimates.items():
        middle = (_mean(side, name in COUNTED) for side in values[name])
        rows.append(
            {
                "measure": name,
                "unit": MEASURES[name].unit,
                **dict(zip("ab", middle, strict=True)),
                "ratio": one.ratio,
                "low": one.low,
                "high": one.high,
                "level": one.level,
                "rounds": one.pairs,
                "better": better(name, one),
                "part": "primary" if name == primary else "exploratory",
            }
        )
    columns = ["measure", "unit", "a", "b", "ratio", "low", "high", "level", "rounds", "better", "part"]
    return pd.DataFrame(rows, columns=columns).set_index("measure")


def better(name: str, estimate: Estimate) -> str:
    """Which setting a measure's interval says is better: "A", "B", or "" where it says neither."""
    if not estimate.differs:
        return ""
    return "A" if (estimate.ratio > 1) == (MEASURES[name].direction == "maximize") else "B"


def _mean(values: np.ndarray, counted: bool) -> float:
    known = values[np.isfinite(values)]
    if counted or not (known > 0).all():
        return float(known.mean())
    return float(np.exp(np.log(known).mean()))
