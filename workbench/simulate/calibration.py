"""Prices of steps fitted to live runs of one model on one machine: made, kept as JSON, and found again."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs

from workbench.errors import InputError
from workbench.metrics.step_table import StepTable
from workbench.simulate.steptime.base import KINDS
from workbench.simulate.steptime.prices import FEATURES, FIRST, Fit, Floats, fit_kind
from workbench.trace import Trace

VERSION = 1
_STEPS = 12  # fewer steps of a kind are not fitted by themselves
_FOLDS = 5
_IDLE_S = 5e-3  # planned so long after the last step ended: the engine had waited for requests
_SETTINGS = (
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
            fits = {
                kind: Fit(**{**one, **{name: tuple(one[name]) for name in ("prices", "lowest", "highest", "ratios")}})
                for kind, one in facts["fits"].items()
            }
            rest = {name: facts[name] for name in _PLAIN}
            return cls(fits=fits, runs=tuple(facts["runs"]), **rest)
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError("calibration", error, "the fields of a saved calibration", "calibrate again") from None


_PLAIN = ("model", "machine", "vllm", "label", "settings", "held_out", "made_at")


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
    measured = [measured_steps(run) for run in runs]
    design, seconds, kinds = (np.concatenate([one[place] for one in measured]) for place in range(3))
    by_run = len(runs) >= 3
    run_of = np.repeat(np.arange(len(runs)), [len(one[1]) for one in measured])
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
    )


def measured_steps(trace: Trace) -> tuple[Floats, Floats, np.ndarray]:
    """Features, seconds and kind of each step of a run whose parts are all on record.

    The seconds are those from the last step's end to this one's, so that what the engine does in between counts too:
    in virtual time the next step begins where the last one ended. After a pause they begin when the step was planned.
    """
    steps = StepTable.of(trace)
    count, prefill, tokens, context = len(steps.row), steps.part_prefill, steps.part_tokens, steps.part_context

    def total(values: Floats) -> Floats:
        return np.asarray(np.bincount(steps.part_step, values, minlength=count))

    prompt = total(np.where(prefill, tokens, 0))
    pairs = total(np.where(prefill, tokens * context + tokens * (tokens + 1) / 2, 0))
    decodes, seen = total(np.where(prefill, 0, tokens)), total(np.where(prefill, 0, tokens * context))
    prompts = total(prefill.astype(np.float64))
    design = np.stack([np.ones(count), prompt, pairs, decodes, seen, prompts, np.minimum(prompt, FIRST)], axis=1)
    before = np.concatenate(([-np.inf], steps.end_s[:-1]))
    seconds = steps.end_s - np.where(steps.scheduled_s - before > _IDLE_S, steps.scheduled_s, before)
    known = (prompt + decodes == steps.prefill_tokens + steps.decode_tokens) & np.isfinite(design).all(axis=1)
    known &= np.isfinite(seconds) & (seconds > 0)
    kinds = np.select([prompt == 0, decodes > 0], ["decode", "mixed"], "prefill")
    return design[known], seconds[known], kinds[known]


def machine_key(meta: Mapping[str, Any]) -> dict[str, Any]:
    """What tells machines apart whose steps differ, from a run's metadata: processor, cores, device."""
    machine, compute = meta.get("machine") or {}, meta.get("compute") or {}
    return {
        "processor": machine.get("processor"),
        "usable_cores": machine.get("usable_cores"),
        "device": compute.get("device"),
    }


def shipped_folder() -> Path:
    """Calibrations that come with the workbench."""
    return Path(__file__).resolve().parents[2] / "data" / "calibrations"


def own_folder() -> Path:
    """Calibrations that the user made."""
    state = os.environ.get("WORKBENCH_STATE") or platformdirs.user_state_dir("tuning-workbench")
    return Path(state) / "calibrations"


def save(calibration: Calibration, folder: Path | None = None) -> Path:
    """Keep it as JSON, by default among the user's own; the file is there whole or not at all."""
    folder = own_folder() if folder is None else folder
    folder.mkdir(parents=True, exist_ok=True)
    where = calibration.machine.get("device") or calibration.machine.get("processor") or "machine"
    words = [calibration.model, str(where), str(calibration.settings.get("dtype") or ""), calibration.made_at]
    path = folder / f"{re.sub(r'[^a-z0-9.]+', '-', ' '.join(words).lower()).strip('-')}.json"
    handle, name = tempfile.mkstemp(prefix=".calibration-", dir=folder)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(calibration.as_dict(), file, indent=1)
            file.write("\n")
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
    return path


def load(path: Path | str) -> Calibration:
    """Read one.

    Raises:
        InputError: there is no such file, or it is no calibration.
    """
    try:
        facts = json.loads(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise InputError("calibration", path, f"a JSON file ({error})", "calibrate again") from None
    return Calibration.from_dict(facts if isinstance(facts, dict) else {})


def match(
    model: str,
    machine: Mapping[str, Any],
    settings: Mapping[str, Any] | None = None,
    folders: Sequence[Path] | None = None,
) -> Calibration | None:
    """The newest calibration of this model on this machine; None where there is none, and the rest is uncalibrated.

    Args:
        model: as it is asked for.
        machine: see :func:`machine_key`.
        settings: start-up fields that must be as they were; those left out, None or "auto" may be anything.
        folders: by default the user's own and those that come with the workbench.
    """
    asked = {
        name: value for name, value in (settings or {}).items() if name in _SETTINGS and value not in (None, "auto")
    }
    found = []
    for folder in (own_folder(), shipped_folder()) if folders is None else folders:
        for path in sorted(folder.glob("*.json")):
            with suppress(InputError):
                one = load(path)
                alike = all(one.settings.get(name) in (value, None) for name, value in asked.items())
                if one.model == model and dict(one.machine) == dict(machine) and alike:
                    found.append(one)
    return max(found, key=lambda one: one.made_at, default=None)


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
        "settings": {name: config[name] for name in _SETTINGS if name in config},
    }


def _same(every: Sequence[dict[str, Any]]) -> dict[str, Any]:
    first = every[0]
    for one in every[1:]:
        for name, value in first.items():
            if one[name] != value:
                got = f"{value} and {one[name]}"
                raise InputError(f"{name} of the runs", got, "runs of one engine", "calibrate each for itself")
    return first
