"""The least that a request's first token can take: counted FLOPs over the peak, weights read over the bandwidth.

Nobody reaches either, so a TTFT below them is impossible, whatever the scheduler does; see also
:mod:`workbench.simulate.floors` for work that nobody recorded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from workbench.architecture import Architecture
from workbench.metrics.mfu import architecture_of, peak_of
from workbench.metrics.step_table import StepTable
from workbench.trace import Trace

FLOORS = ("compute_floor_s", "bandwidth_floor_s")
_COLUMNS = ("request", "computed_tokens", "flops", *FLOORS, "floor_s", "ttft_s", "impossible")


def request_floors(
    trace: Trace,
    architecture: Architecture | None = None,
    *,
    flops_per_s: float | None = None,
    bytes_per_s: float | None = None,
    weight_bytes: float | None = None,
    steps: StepTable | None = None,
) -> pd.DataFrame:
    """Return one row a request that was prefilled: what its first token needed at least.

    Columns: ``request``, ``computed_tokens`` (prefill that was done until its first output, recomputing included),
    ``flops``, ``compute_floor_s``, ``bandwidth_floor_s`` (weights once a step), ``floor_s`` (the larger of the two),
    ``ttft_s`` (from the planned arrival; NaN where there was none) and ``impossible``: never true of a sound
    measurement. A floor is NaN where its rate is not known; without a model there are no rows.

    Args:
        trace: of a run with step records.
        architecture: the model; this and what follows is by default that of the run's metadata.
        flops_per_s: dense 16-bit peak of all devices together.
        bytes_per_s: memory bandwidth of all devices together.
        weight_bytes: of a weight; one of less than 2 bytes is taken to be multiplied at twice the peak.
        steps: the trace's step table, where the caller has it already.
    """
    architecture = architecture or architecture_of(trace)
    if architecture is None:
        return pd.DataFrame(columns=list(_COLUMNS)).astype(dict.fromkeys((*FLOORS, "floor_s", "ttft_s"), float))
    peak, link = peak_of(trace) or {}, _bandwidth(trace) or {}
    flops_per_s = peak.get("flops_per_s", np.nan) if flops_per_s is None else flops_per_s
    bytes_per_s = link.get("bytes_per_s", np.nan) if bytes_per_s is None else bytes_per_s
    width = weight_bytes_of(trace) if weight_bytes is None else weight_bytes
    table = StepTable.of(trace) if steps is None else steps
    order = table.by_request
    parts = order[table.part_prefill[order] & ~table.had_output]
    of, tokens, count = table.part_of[parts], table.part_tokens[parts], len(table.names)
    flops = np.bincount(of, architecture.flops(tokens, np.nan_to_num(table.part_context[parts])), minlength=count)
    read = np.bincount(of, architecture.read_bytes(tokens, width), minlength=count)
    computed = np.bincount(of, tokens, minlength=count).astype(np.int64)
    frame = pd.DataFrame(
        {
            "request": pd.array(table.names, dtype="str"),
            "computed_tokens": computed,
            "flops": flops,
            "compute_floor_s": flops / (flops_per_s * (2 if width < 2 else 1)),
            "bandwidth_floor_s": read / bytes_per_s,
        }
    )
    frame["floor_s"] = frame[list(FLOORS)].max(axis=1)
    requests = trace.requests[["request", "planned_s", "first_s"]]
    waited = requests.assign(ttft_s=requests["first_s"] - requests["planned_s"])[["request", "ttft_s"]]
    frame = frame[frame["computed_tokens"] > 0].merge(waited, on="request", how="left")
    frame["impossible"] = frame["ttft_s"] < frame["floor_s"]
    return frame


def weight_bytes_of(trace: Trace) -> float:
    """Bytes of a weight by the run's configuration; of several that it may mean the least, as a floor needs it."""
    config = (trace.meta.get("engine") or {}).get("config") or {}
    narrow = config.get("quantization")
    return 2.0 if narrow is None else 1.0 if narrow in ("fp8", "int8") else 0.5


def _bandwidth(trace: Trace) -> Mapping[str, Any] | None:
    """``bytes_per_s`` of all devices' memory and its ``source``; None where the metadata has none."""
    found: Mapping[str, Any] | None = (trace.meta.get("compute") or {}).get("bandwidth")
    return found
