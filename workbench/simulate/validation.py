"""Predicted against measured: a live run's requests played through the simulator, and how far off it was."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from workbench.config import SLO
from workbench.errors import InputError, SeenRunError
from workbench.metrics.classes import duration
from workbench.metrics.gaps import Gaps
from workbench.metrics.requests import LONG_PROMPT, per_request
from workbench.simulate.calibration import Calibration
from workbench.simulate.fitting import differs
from workbench.simulate.host import Simulator
from workbench.simulate.outcome import play_job
from workbench.simulate.replay import job_of, prompts_of
from workbench.simulate.steptime.calibrated import Calibrated
from workbench.simulate.steptime.varied import Varied
from workbench.trace import Trace, floats

# Name and unit of each metric, in the order of tables.
METRICS: Mapping[str, str] = {
    "gap_p50": "ms",
    "gap_p99": "ms",
    "gap_max": "ms",
    "engine_gap_p50": "ms",
    "engine_gap_p99": "ms",
    "long_ttft": "s",
    "chat_ttft": "s",
    "throughput": "tokens/s",
    "makespan": "s",
}
DRAWS = 5  # plays of the simulator behind a prediction: its steps vary, and one play's P99 is a draw of its own


@dataclass(frozen=True)
class Validation:
    """A live run and what was foretold of it.

    Attributes:
        run: its id.
        setting: what it was played under.
        source: the calibration in one line.
        measured: by metric of :data:`METRICS`, those that the run has.
        predicted: the same; the median of several plays, whose steps vary as measured steps do.
        requests: one row a request, index ``request``: ``class``, ``prompt_tokens``, ``planned_s``, and in seconds from
            the planned arrival ``ttft_measured_s``, ``ttft_predicted_s``, ``end_measured_s``, ``end_predicted_s``, with
            ``ttft_error_pct`` and ``end_error_pct``.
        faults: errors of policies in the simulator.
    """

    run: str
    setting: str
    source: str
    measured: Mapping[str, float]
    predicted: Mapping[str, float]
    requests: pd.DataFrame
    faults: tuple[str, ...] = ()

    @cached_property
    def error_pct(self) -> dict[str, float]:
        """By metric: predicted over measured - 1, %."""
        return {name: (self.predicted[name] / self.measured[name] - 1) * 100 for name in self.measured}

    @property
    def table(self) -> pd.DataFrame:
        """One row a metric, its index: ``unit``, ``measured``, ``predicted``, ``error_pct``."""
        rows = {
            name: {"unit": METRICS[name], "measured": self.measured[name], "predicted": self.predicted[name]}
            | {"error_pct": error}
            for name, error in self.error_pct.items()
        }
        columns = ["unit", "measured", "predicted", "error_pct"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("metric")

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as JSON takes it."""
        table, requests = self.table.reset_index(), self.requests.reset_index()
        return {
            "run": self.run,
            "setting": self.setting,
            "calibration": self.source,
            "metrics": table.to_dict("records"),
            "requests": requests.astype(object).where(requests.notna(), None).to_dict("records"),
            "faults": list(self.faults),
        }


def validate(
    trace: Trace, calibration: Calibration, simulator: Simulator, *, draws: int = DRAWS, seed: int = 0
) -> Validation:
    """Play a live run's requests through the simulator, and compare.

    The simulator gets what was asked of the engine (see :func:`workbench.simulate.replay.job_of`) and a calibration
    that never saw the run. Both traces then go through the same metrics. Client times are compared with client times:
    the calibration's constant delays of client and front end stand between the end of a virtual step and the arrival of
    its token. Engine gaps, between ends of steps, are there beside them and hold no such constant.

    Args:
        trace: a complete live run.
        calibration: of the same model on the same machine.
        simulator: one that was started.
        draws: plays whose median is the prediction.
        seed: of the first play; the next ones count on.

    Raises:
        SeenRunError: the calibration was fitted to this run.
        InputError: the run cannot be replayed, or the calibration is of another machine, model or setting.
        EngineError: the simulator could not play it.
    """
    check_unseen(trace, calibration)
    job = job_of(trace, Varied(Calibrated(calibration), seed), prompts=prompts_of(trace))
    played: list[Trace] = []
    faults: list[str] = []
    for draw in range(draws):
        job.step_time = Varied(Calibrated(calibration), seed + draw).spec()
        outcome = play_job(simulator, job)
        played.append(outcome.trace())
        faults += outcome.faults
    ours = [figures(one) for one in played]
    measured = figures(trace)
    measured = {name: value for name, value in measured.items() if all(name in one for one in ours)}
    return Validation(
        run=str(trace.meta.get("id")),
        setting=" ".join(str(trace.meta[key]) for key in ("scenario", "setting") if trace.meta.get(key)),
        source=calibration.source,
        measured=measured,
        predicted={name: statistics.median(one[name] for one in ours) for name in measured},
        requests=_by_request(trace, played),
        faults=tuple(dict.fromkeys(faults)),
    )


def check_unseen(trace: Trace, calibration: Calibration) -> None:
    """Refuse a run that says nothing about a calibration.

    Raises:
        SeenRunError: the calibration was fitted to it.
        InputError: it is of another machine, model or setting.
    """
    name = str(trace.meta.get("id"))
    if name in calibration.runs:
        raise SeenRunError(
            "run to validate",
            name,
            "one that the calibration was not fitted to",
            "play another, or calibrate on others",
        )
    different = differs(calibration, trace)
    if different:
        raise InputError(
            f"run {name}", different, "a run of the machine, model and settings of the calibration", "calibrate there"
        )


def figures(trace: Trace) -> dict[str, float]:
    """What is compared, by metric of :data:`METRICS`; those that a run does not have are left out.

    Gaps are pooled over all streams. ``long_ttft`` is the mean TTFT of prompts of 1,000 tokens or more, ``chat_ttft``
    that of the others, both from the planned arrival. ``throughput`` counts prompt and output tokens over
    ``makespan``, which goes from the first planned arrival to the end of the last stream.
    """
    gaps = Gaps.of(trace)
    requests = per_request(trace, SLO(), gaps)
    found: dict[str, float] = {}
    for name, values in (("gap", gaps.gap_ms), ("engine_gap", gaps.engine_gap_ms)):
        known = values[np.isfinite(values)]
        if len(known):
            p50, p99, most = np.percentile(known, (50, 99, 100)).tolist()
            found |= {f"{name}_p50": p50, f"{name}_p99": p99} | ({"gap_max": most} if name == "gap" else {})
    long = requests["prompt_tokens"] >= LONG_PROMPT
    for name, some in (("long_ttft", requests[long]), ("chat_ttft", requests[~long])):
        if some["ttft_s"].notna().any():
            found[name] = float(some["ttft_s"].mean())
    ended = requests["planned_s"] + requests["e2e_s"]
    makespan = float(ended.max() - requests["planned_s"].min())
    if makespan > 0 and duration(trace, gaps):
        tokens = float(requests["prompt_tokens"].sum() + gaps.tokens.sum())
        found |= {"throughput": tokens / makespan, "makespan": makespan}
    return {name: found[name] for name in METRICS if found.get(name, 0) > 0}


def checked(calibration: Calibration, validations: Iterable[Validation]) -> Calibration:
    """The calibration with the errors of these runs among its own, so that every number made with it carries them."""
    found = {one.run: {name: round(error, 2) for name, error in one.error_pct.items()} for one in validations}
    return replace(calibration, checks={**calibration.checks, **found})


def _by_request(trace: Trace, played: Sequence[Trace]) -> pd.DataFrame:
    """Each request's TTFT and end, measured and foretold."""
    measured = _times(trace)
    ours = [_times(one) for one in played]
    table = trace.tables["requests"]
    frame = pd.DataFrame(
        {
            "class": table["class"].to_pylist(),
            "prompt_tokens": table["prompt_tokens"].to_pylist(),
            "planned_s": floats(table["planned_s"]),
        },
        index=pd.Index(table["request"].to_pylist(), name="request"),
    )
    for name in ("ttft", "end"):
        frame[f"{name}_measured_s"] = measured[f"{name}_s"]
        frame[f"{name}_predicted_s"] = pd.concat([one[f"{name}_s"] for one in ours], axis=1).median(axis=1)
        frame[f"{name}_error_pct"] = (frame[f"{name}_predicted_s"] / frame[f"{name}_measured_s"] - 1) * 100
    return frame


def _times(trace: Trace) -> pd.DataFrame:
    requests = per_request(trace, SLO(), Gaps.of(trace)).set_index("request")
    return pd.DataFrame({"ttft_s": requests["ttft_s"], "end_s": requests["e2e_s"]})
