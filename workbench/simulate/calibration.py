"""Prices of steps fitted to live runs of one model on one machine, with their errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec
import numpy as np

from workbench.errors import InputError
from workbench.simulate.steptime.base import KINDS
from workbench.simulate.steptime.prices import FEATURES, QUANTILES, Fit

VERSION = 1
SETTINGS = (
    *("dtype", "quantization", "tensor_parallel_size", "pipeline_parallel_size"),
    *("enforce_eager", "attention_backend"),
)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What steps cost on one machine with one model.

    Attributes:
        model: as it is asked for.
        machine: processor, cores that may be used, device: see :func:`machine_key`.
        vllm: version that was measured.
        label: where the steps come from: "live CPU" or "live GPU".
        settings: start-up fields that change what a step costs.
        fits: by kind of step; kinds that hardly ran are missing.
        runs: ids of the runs it was fitted to; it is never judged by these.
        held_out: how its error was found.
        made_at: when, ISO 8601, UTC.
        delays: seconds that client and front end add, see :class:`workbench.simulate.measured.Delays`.
        checks: by id of a live run that the fit never saw, and metric: foretold over measured - 1, %; see
            :mod:`workbench.simulate.validation`.
    """

    model: str
    machine: Mapping[str, Any]
    vllm: str
    label: str
    settings: Mapping[str, Any]
    fits: Mapping[str, Fit]
    runs: tuple[str, ...]
    held_out: str
    made_at: str
    delays: Mapping[str, float] = field(default_factory=dict)
    checks: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def residual_pct(self) -> dict[str, float]:
        """Median error on held-out steps by kind, %."""
        return {kind: one.median_pct for kind, one in self.fits.items()}

    @property
    def source(self) -> str:
        """In one line: what was measured, and how well it foretells."""
        errors = ", ".join(
            f"{kind} {one.median_pct:.1f} %{'' if one.held_out else ' (not held out)'}"
            for kind, one in self.fits.items()
        )
        where = self.machine.get("device") or self.machine.get("processor") or "an unknown machine"
        steps, runs = sum(one.steps for one in self.fits.values()), len(self.runs)
        return (
            f"{self.label}, {self.model} on {where}, {steps:,} steps of {runs} run{'s' if runs != 1 else ''}; "
            f"median error on {self.held_out}: {errors}"
        )

    @property
    def errors(self) -> dict[str, dict[str, float]]:
        """By metric, of the runs in :attr:`checks`: ``median_pct`` and ``p90_pct`` of the error, and ``runs``."""
        return errors_of(self.checks.values())

    @property
    def error_label(self) -> str:
        """The error on live runs that the fit never saw, short enough to stand beside a number."""
        errors = self.errors
        known = [f"{name} ±{errors[key]['median_pct']:.0f} %" for key, name in _LABELLED.items() if key in errors]
        if known:
            return ", ".join(known)
        steps = ", ".join(f"{kind} ±{one.median_pct:.0f} %" for kind, one in self.fits.items())
        return f"no other run checked yet, steps: {steps}"

    def as_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"version": VERSION, "features": list(FEATURES), **asdict(self)}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Calibration:
        """Take it from what :meth:`as_dict` gave.

        Raises:
            InputError: it is of another version, or damaged.
        """
        try:
            if facts["version"] != VERSION or tuple(facts["features"]) != FEATURES:
                raise InputError("calibration", facts["version"], f"version {VERSION}", "calibrate again")
            found = msgspec.convert(facts, cls)
        except (KeyError, TypeError, ValueError) as error:  # msgspec's are of the last kind, with the place
            raise InputError("calibration", error, "the fields of a saved calibration", "calibrate again") from None
        for kind, one in found.fits.items():
            if not (kind in KINDS and _is_sound(one)):
                raise InputError(f"calibration: fits.{kind}", one, "finite prices of a kind of step", "calibrate again")
        return found


def _is_sound(fit: Fit) -> bool:
    """Whether a fit has all its numbers, and only numbers that can be."""
    each = (fit.prices, fit.lowest, fit.highest)
    numbers = [*fit.prices, *fit.lowest, *fit.highest, *fit.ratios, fit.median_pct, fit.p90_pct]
    return (
        all(len(one) == len(FEATURES) for one in each)
        and len(fit.ratios) == len(QUANTILES)
        and all(map(math.isfinite, numbers))
        and min(fit.prices) >= 0
        and fit.steps > 0
    )


_LABELLED = {"gap_p50": "gap P50", "gap_p99": "gap P99", "long_ttft": "long TTFT", "throughput": "throughput"}


def errors_of(checks: Iterable[Mapping[str, float]]) -> dict[str, dict[str, float]]:
    """Median and 90th percentile of the absolute error by metric, %, and over how many runs.

    Args:
        checks: for each run, signed errors by metric, %.
    """
    off: dict[str, list[float]] = {}
    for one in checks:
        for name, error in one.items():
            off.setdefault(name, []).append(abs(error))
    return {
        name: {
            "median_pct": float(np.median(some)),
            "p90_pct": float(np.percentile(some, 90)),
            "runs": len(some),
        }
        for name, some in off.items()
    }


def machine_key(meta: Mapping[str, Any]) -> dict[str, Any]:
    """What tells machines apart whose steps differ, from a run's metadata: processor, cores, device."""
    machine, compute = meta.get("machine") or {}, meta.get("compute") or {}
    return {
        "processor": machine.get("processor"),
        "usable_cores": machine.get("usable_cores"),
        "device": compute.get("device"),
    }
