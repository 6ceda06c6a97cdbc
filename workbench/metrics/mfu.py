"""MFU: the share of the device's peak that a step turned into what the model needs, counted from its batch.

FLOPs are counted from the make-up of each step (:mod:`workbench.architecture`), the peak has a name: measured by a
matrix product on this machine, or published for the device. Both stand in the run's metadata under ``compute``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from workbench.architecture import Architecture
from workbench.metrics.gaps import Floats
from workbench.metrics.step_table import StepTable
from workbench.trace import Trace

KINDS = ("decode", "mixed", "prefill")


def step_flops(trace: Trace, architecture: Architecture | None = None, steps: StepTable | None = None) -> Floats:
    """FLOPs that the model needed for each step, in the order of :class:`StepTable`.

    The head counts for positions that were sampled: one where the step made output for the request.

    Args:
        trace: of a run with step records.
        architecture: the model; by default that of the run's metadata.
        steps: the trace's step table, where the caller has it already.

    Returns:
        NaN where the model is not known, or not all parts of the step are on record.
    """
    steps = StepTable.of(trace) if steps is None else steps
    architecture = architecture or architecture_of(trace)
    if architecture is None:
        return np.full(len(steps.row), np.nan)
    counted = architecture.flops(
        steps.part_tokens,
        steps.part_context,
        np.minimum(steps.part_emitted, steps.part_tokens),
        decode=~steps.part_prefill,
    )
    flops = np.bincount(steps.part_step, counted, minlength=len(steps.row))
    found = np.bincount(steps.part_step, steps.part_tokens, minlength=len(steps.row))
    return np.where(found == steps.prefill_tokens + steps.decode_tokens, flops, np.nan)


def mfu(trace: Trace, architecture: Architecture | None = None, peak: float | None = None) -> pd.DataFrame:
    """Return one row a step: what it needed and which share of the peak that was.

    Columns: ``step``, ``end_s``, ``kind`` (decode, mixed, prefill), ``tokens``, ``flops``, ``seconds``, ``mfu`` (0..1;
    NaN where FLOPs or peak are not known). ``attrs["peak"]`` says what the peak is, ``attrs["missing"]`` why there is
    no MFU.

    Args:
        trace: of a run with step records.
        architecture: the model; by default that of the run's metadata.
        peak: FLOP/s of all devices of the engine together; by default that of the run's metadata.
    """
    steps = StepTable.of(trace)
    named = peak_of(trace)
    per_s = peak if peak is not None else named["flops_per_s"] if named else np.nan
    flops = step_flops(trace, architecture, steps)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(steps.seconds > 0, flops / (steps.seconds * per_s), np.nan)
    prefills, decodes = steps.prefill_tokens > 0, steps.decode_tokens > 0
    frame = pd.DataFrame(
        {
            "step": steps.number,
            "end_s": steps.end_s,
            "kind": pd.Categorical(np.select([prefills & decodes, prefills], ["mixed", "prefill"], "decode"), KINDS),
            "tokens": steps.prefill_tokens + steps.decode_tokens,
            "flops": flops,
            "seconds": steps.seconds,
            "mfu": share,
        }
    )
    frame.attrs["peak"] = "peak given by hand" if peak is not None else named["source"] if named else ""
    frame.attrs["missing"] = missing(trace) if architecture is None or peak is None else ""
    return frame


def mfu_by_kind(trace: Trace, architecture: Architecture | None = None, peak: float | None = None) -> pd.DataFrame:
    """Return one row a kind of step, and ``all``: index ``kind``, without kinds that did not happen.

    Columns: ``steps``, ``tokens_per_step`` (mean), ``seconds``, ``flops``, ``flops_per_s``, ``mfu``. Over the steps
    with known FLOPs, and weighted with time: the FLOPs of all of them over what the peak would have done meanwhile.
    """
    frame = mfu(trace, architecture, peak)
    known = frame[frame["flops"].notna() & (frame["seconds"] > 0)]
    peak_s = (known["flops"] / known["mfu"] / known["seconds"]).median() if len(known) else np.nan
    rows = {}
    for kind in (*KINDS, "all"):
        of_kind = known if kind == "all" else known[known["kind"] == kind]
        if len(of_kind):
            flops, seconds = float(of_kind["flops"].sum()), float(of_kind["seconds"].sum())
            rows[kind] = {
                "steps": len(of_kind),
                "tokens_per_step": float(of_kind["tokens"].mean()),
                "seconds": seconds,
                "flops": flops,
                "flops_per_s": flops / seconds,
                "mfu": flops / seconds / peak_s,
            }
    columns = ["steps", "tokens_per_step", "seconds", "flops", "flops_per_s", "mfu"]
    found = pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("kind")
    found.attrs = dict(frame.attrs)
    return found


def architecture_of(trace: Trace) -> Architecture | None:
    """The model of a run, from its metadata; None where that does not say."""
    facts = _compute(trace).get("architecture")
    return Architecture.from_dict(facts) if facts else None


def peak_of(trace: Trace) -> Mapping[str, Any] | None:
    """The peak that a run is held against, ``flops_per_s`` and ``source``; None where the metadata has none."""
    found = _compute(trace).get("peak")
    return found if found and found.get("flops_per_s") else None


def missing(trace: Trace) -> str:
    """Why a run has no MFU; empty where it has."""
    why = _compute(trace).get("missing") or {}
    found = []
    if not trace.tables["steps"].num_rows:
        found.append("no step records")
    if not _compute(trace).get("architecture"):
        found.append(str(why.get("architecture") or "the run does not say which model it was"))
    if peak_of(trace) is None:
        found.append(str(why.get("peak") or "the run does not say what its device can do"))
    return "; ".join(found)


def _compute(trace: Trace) -> Mapping[str, Any]:
    return trace.meta.get("compute") or {}
