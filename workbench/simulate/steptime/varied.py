"""Steps that vary as the measured ones did: without that, a simulated engine has no tail of its own."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from workbench.simulate.steptime.base import Band, StepShape
from workbench.simulate.steptime.calibrated import Calibrated
from workbench.simulate.steptime.prices import QUANTILES


class Varied:
    """A calibrated model whose steps differ from the price by what held-out steps of their kind differed.

    Each call draws anew, from a seed: the same steps in the same order take the same times.

    Args:
        model: a calibration's model.
        seed: of the draws.
    """

    name = "calibrated"
    calibrated = True

    def __init__(self, model: Calibrated, seed: int = 0) -> None:
        self.model, self.seed = model, seed
        self._random = random.Random(seed)  # noqa: S311  nothing secret
        self._ratios = {kind: fit.ratios for kind, fit in model.fits.items()}

    def seconds(self, step: StepShape) -> float:
        """The price, times a ratio of measured to foretold time that steps of this kind had."""
        return self.model.seconds(step) * quantile(self._ratios[step.kind], self._random.random())

    def interval(self, step: StepShape) -> float:
        """Another draw: the steps of one device come one after the other, so ask for one of the two."""
        return self.seconds(step)

    def band(self, step: StepShape) -> Band:
        """That of the model; nothing is drawn."""
        return self.model.band(step)

    def outside(self, step: StepShape) -> str:
        """What of the step the fit never saw, in words; empty where it saw its like."""
        return self.model.outside(step)

    @property
    def delays(self) -> Mapping[str, float]:
        """Those of the model."""
        return self.model.delays

    def describe(self) -> Mapping[str, Any]:
        """That of the model, and that its steps vary."""
        return {**self.model.describe(), "seed": self.seed, "varied": True}

    def spec(self) -> dict[str, Any]:
        """Plain data to make it again, at the first draw."""
        return {"kind": "varied", "model": self.model.spec(), "seed": self.seed}

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Varied:
        """Make it from what :meth:`spec` gave."""
        return cls(Calibrated.from_spec(spec["model"]), spec["seed"])


def quantile(ratios: tuple[float, ...], share: float) -> float:
    """The ratio at that share of the steps, straight between the :data:`QUANTILES`; no further than the outermost."""
    last = QUANTILES[0]
    if share <= last:
        return ratios[0]
    for place in range(1, len(QUANTILES)):
        here = QUANTILES[place]
        if share <= here:
            part = (share - last) / (here - last)
            return ratios[place - 1] + part * (ratios[place] - ratios[place - 1])
        last = here
    return ratios[-1]
