"""From live runs of one engine to the prices of its steps, and whether another run is of the same engine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from workbench.errors import InputError
from workbench.simulate.calibration import SETTINGS, Calibration, machine_key
from workbench.simulate.measured import delays, measured_steps
from workbench.simulate.steptime.base import KINDS
from workbench.simulate.steptime.prices import Fit, fit_kind
from workbench.trace import Trace

_STEPS = 12  # fewer steps of a kind are not fitted by themselves
_FOLDS = 5


def fit(traces: Iterable[Trace], *, made_at: str | None = None) -> Calibration:
    """Fit prices to the step records of live runs of one engine.

    The error is that on steps which the fit did not see: those of each run in turn where there are three runs or more,
    else those of each fifth of the steps in turn. Kinds with few steps of prefill share those of the other.

    Args:
        traces: runs with step records, of one model on one machine.
        made_at: ISO 8601; by default now.

    Raises:
        InputError: the runs differ in model or machine, are not live, or hold too few steps.
    """
    runs = list(traces)
    if not runs:
        raise InputError("calibration", "no runs", "at least one live run", "play a scenario on the engine first")
    facts = _same([_facts(run) for run in runs])
    steps = [measured_steps(run) for run in runs]
    design, seconds, kinds = (np.concatenate([one[place] for one in steps]) for place in range(3))
    by_run = len(runs) >= 3
    run_of = np.repeat(np.arange(len(runs)), [len(one[1]) for one in steps])
    fits: dict[str, Fit] = {}
    for kind in KINDS:
        mine = kinds == kind
        if 0 < mine.sum() < 2 * _STEPS and kind != "decode":
            mine = kinds != "decode"  # one step of the kind may be all there is: both are priced as mixed
        if mine.sum() >= _STEPS:
            alike = "mixed" if len(np.unique(kinds[mine])) > 1 else kind
            groups = run_of[mine] if by_run else np.arange(mine.sum()) * _FOLDS // mine.sum()
            fits[kind] = fit_kind(alike, design[mine], seconds[mine], groups, _STEPS)
    if "decode" not in fits or len(fits) == 1:
        got = ", ".join(f"{(kinds == kind).sum()} {kind}" for kind in KINDS) + f" steps in {len(runs)} runs"
        raise InputError("calibration", got, f"{_STEPS} decode steps and {_STEPS} with prefill", "play a longer load")
    return Calibration(
        **facts,
        fits=fits,
        runs=tuple(str(run.meta.get("id") or "") for run in runs),
        held_out="runs left out in turn" if by_run else "fifths of the steps left out in turn",
        made_at=made_at or datetime.now(UTC).isoformat(timespec="seconds"),
        delays=delays(runs)._asdict(),
    )


def differs(calibration: Calibration, trace: Trace) -> str:
    """What of machine, model or settings of a run is not what was calibrated, in words; empty where all is.

    Raises:
        InputError: the run is not live.
    """
    facts = _facts(trace)
    found = [
        f"{name} {facts[name]}, not {getattr(calibration, name)}"
        for name in ("model", "vllm")
        if facts[name] != getattr(calibration, name)
    ]
    for name in ("machine", "settings"):
        mine, its = getattr(calibration, name), facts[name]
        keys = [key for key in mine if mine[key] != its.get(key)]
        found += [f"{key} {its.get(key)}, not {mine[key]}" for key in keys]
    return ", ".join(found)


def _facts(trace: Trace) -> dict[str, Any]:
    """What must be equal for runs to share a calibration."""
    meta = trace.meta
    label = str(meta.get("label") or "")
    if not label.startswith("live"):
        raise InputError("calibration", label or "a run of unknown origin", "live runs", "calibrate on a live engine")
    engine = meta.get("engine") or {}
    config = engine.get("config") or {}
    return {
        "model": str(config.get("model") or ""),
        "machine": machine_key(meta),
        "vllm": str(engine.get("vllm") or ""),
        "label": label,
        "settings": {name: config[name] for name in SETTINGS if name in config},
    }


def _same(every: Sequence[dict[str, Any]]) -> dict[str, Any]:
    first = every[0]
    for one in every[1:]:
        for name, value in first.items():
            if one[name] != value:
                got = f"{value} and {one[name]}"
                raise InputError(f"{name} of the runs", got, "runs of one engine", "calibrate each for itself")
    return first
