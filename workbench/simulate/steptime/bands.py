"""Bands from the spread between models; the ends of a band are models themselves, so that they can be simulated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from workbench.errors import InputError
from workbench.simulate.steptime.base import Band, StepShape, StepTime

End = Literal["low", "high"]


class Edge:
    """The optimistic or the pessimistic end of the bands of some models; run a simulation on each to draw a band.

    Args:
        end: "low" (every step as fast as any of them may be) or "high".
        models: whose bands are joined; the first is the one in the middle.

    Raises:
        InputError: no model, or no such end.
    """

    name = "edge"

    def __init__(self, end: End, *models: StepTime) -> None:
        if not models or end not in ("low", "high"):
            raise InputError(
                "edge of a band", f"{end} of {len(models)} models", "low or high of at least one", "say so"
            )
        self.end, self.models = end, models
        self.calibrated = models[0].calibrated

    def seconds(self, step: StepShape) -> float:
        """That end of the band, s."""
        found = joined(step, *self.models)
        return found.low if self.end == "low" else found.high

    def interval(self, step: StepShape) -> float:
        """The same share of it as in the first model."""
        first = self.models[0]
        return self.seconds(step) * first.interval(step) / first.seconds(step)

    def outside(self, step: StepShape) -> str:
        """That of the first model."""
        return self.models[0].outside(step)

    def band(self, step: StepShape) -> Band:
        """The whole band around the first model."""
        return joined(step, *self.models)

    def describe(self) -> Mapping[str, Any]:
        """That of the first model, and which end of which models this is."""
        names = " and ".join(one.name for one in self.models)
        return {**self.models[0].describe(), "name": f"{self.end} end of {names}"}

    def spec(self) -> dict[str, Any]:
        """Plain data to make it again."""
        return {"kind": self.name, "end": self.end, "models": [one.spec() for one in self.models]}

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Edge:
        """Make it from what :meth:`spec` gave."""
        from workbench.simulate.steptime import from_spec

        return cls(spec["end"], *(from_spec(one) for one in spec["models"]))


def joined(step: StepShape, *models: StepTime) -> Band:
    """The band that holds those of all models, around the first one's answer."""
    bands = [one.band(step) for one in models]
    return Band(min(one.low for one in bands), bands[0].seconds, max(one.high for one in bands))
