"""A step as steps were measured on this machine: a sum over what it holds, each kind of step with its own prices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from workbench.errors import InputError
from workbench.simulate.calibration import Calibration
from workbench.simulate.steptime.base import KINDS, Band, StepShape
from workbench.simulate.steptime.prices import FEATURES, FIRST, Fit

_OF_DECODES = tuple(place for place, name in enumerate(FEATURES) if name in ("decode", "decode_context"))


class Calibrated:
    """Seconds of a step by a :class:`Calibration`, which was fitted to live steps.

    A step outside of what the fit saw is priced all the same, and :meth:`outside` says so: nothing is extrapolated
    silently.

    Args:
        calibration: the fit.

    Raises:
        InputError: it has no prices for decode steps, or for steps with prefill.
    """

    name = "calibrated"
    calibrated = True

    def __init__(self, calibration: Calibration) -> None:
        self.calibration = calibration
        self.fits = _complete(calibration)
        self._prices = {kind: fit.prices for kind, fit in self.fits.items()}

    def seconds(self, step: StepShape) -> float:
        """From the end of the step before until this one's output is there, while the engine is never idle."""
        tokens, decodes = step.prefill_tokens, step.decodes
        kind = "decode" if not tokens else "mixed" if decodes else "prefill"
        fixed, token, pair, decode, seen, prompt, first = self._prices[kind]
        return (
            fixed
            + token * tokens
            + pair * step.prefill_pairs
            + decode * decodes
            + seen * step.decode_context
            + prompt * step.prefills
            + first * (tokens if tokens < FIRST else FIRST)
        )

    def interval(self, step: StepShape) -> float:
        """Until the next step can begin."""
        return self.seconds(step)

    def band(self, step: StepShape) -> Band:
        """With the 90th percentile of the error that steps of this kind had."""
        seconds, off = self.seconds(step), 1 + self.fits[step.kind].p90_pct / 100
        return Band(seconds / off, seconds, seconds * off)

    def outside(self, step: StepShape) -> str:
        """What of the step the fit never saw, in words; empty where it saw its like."""
        kind = step.kind
        if kind not in self.calibration.fits:
            return f"a {kind} step (none was measured)"
        return self.calibration.fits[kind].outside(step)

    @property
    def delays(self) -> Mapping[str, float]:
        """Seconds that client and front end add: see :class:`workbench.simulate.measured.Delays`."""
        return self.calibration.delays

    def describe(self) -> dict[str, Any]:
        """Plain data for a run's metadata."""
        calibration = self.calibration
        return {
            "name": self.name,
            "calibrated": True,
            "label": calibration.error_label,
            "source": calibration.source,
            "error_pct": {
                kind: {"median": fit.median_pct, "p90": fit.p90_pct, "held_out": fit.held_out}
                for kind, fit in calibration.fits.items()
            },
            "errors": {name: dict(error) for name, error in calibration.errors.items()},
            "delays": dict(calibration.delays),
            "stages": 1,
        }

    def spec(self) -> dict[str, Any]:
        """Plain data to make it again."""
        return {"kind": self.name, "calibration": self.calibration.as_dict()}

    @classmethod
    def from_spec(cls, spec: dict[str, Any]) -> Calibrated:
        """Make it from what :meth:`spec` gave."""
        return cls(Calibration.from_dict(spec["calibration"]))


def _complete(calibration: Calibration) -> dict[str, Fit]:
    """Prices for every kind: a kind of prefill that never ran is priced as the other, decodes as decode steps do."""
    fits = dict(calibration.fits)
    if "decode" not in fits or len(fits) == 1:
        got = f"prices of {', '.join(fits) or 'no'} steps"
        raise InputError("calibration", got, "those of decode steps and of steps with prefill", "calibrate again")
    if "prefill" not in fits:
        fits["prefill"] = fits["mixed"]
    if "mixed" not in fits:
        prices = list(fits["prefill"].prices)
        for place in _OF_DECODES:
            prices[place] = fits["decode"].prices[place]
        fits["mixed"] = replace(fits["prefill"], prices=tuple(prices))
    return {kind: fits[kind] for kind in KINDS}
