"""From a trace to the rows that a chart draws: decimation, labels, what is missing and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from numpy.typing import NDArray

from workbench.config import Knobs
from workbench.i18n import translate
from workbench.metrics.requests import LONG_PROMPT
from workbench.trace import Trace
from workbench.ui.charts.theme import Look
from workbench.units import MIB

_FURTHER = {  # knobs that few revisions set → the policy that alone goes by one; none where all do
    "target_gap_ms": "target_gap",
    "aging_s": "qos",
    "watermark": None,
    "reserve_full": None,
    "prefix_cache": None,
}


def decimate(frame: pd.DataFrame, time: str, values: Sequence[str], limit: int, by: str | None = None) -> pd.DataFrame:
    """Return at most ``limit`` rows of ``frame``, so that no spike is lost.

    Time is cut into equal buckets; each bucket (of each group of ``by``) keeps, for every column of ``values``,
    the row with its largest value. A frame that is small enough is returned as it is.

    Args:
        frame: the rows.
        time: column with the time.
        values: columns whose maxima must survive.
        limit: most rows to return, at least one for each group and column.
        by: column that splits the rows into series that are thinned one by one.
    """
    if len(frame) <= limit:
        return frame
    group = frame[by].astype("category").cat.codes.to_numpy() if by else np.zeros(len(frame), dtype=np.int64)
    groups = int(group.max()) + 1
    buckets = max(1, limit // (groups * len(values)))
    at = frame[time].to_numpy(dtype=float)
    low, high = np.nanmin(at), np.nanmax(at)
    width = (high - low) / buckets or 1.0
    bucket = np.nan_to_num(np.minimum((at - low) // width, buckets - 1)).astype(np.int64)
    cell = group.astype(np.int64) * buckets + bucket
    keep: set[int] = set()
    for column in values:
        value = frame[column].to_numpy(dtype=float, na_value=np.nan)
        order = np.lexsort((np.where(np.isnan(value), -np.inf, value), cell))
        last = np.flatnonzero(np.diff(cell[order], append=-1))
        keep.update(order[last].tolist())
    return frame.iloc[sorted(keep)]


def known(frame: pd.DataFrame, column: str) -> bool:
    """Whether the trace has any value in this column."""
    return len(frame) > 0 and column in frame and bool(frame[column].notna().any())


def timeline(trace: Trace) -> pd.DataFrame:
    """Steps with times, in order: ``start``, ``end`` (s), ``ms``, ``tokens``, ``activation_mib`` beside the trace's.

    A step without a worker start begins where it was scheduled; one without an end (the engine died) is left out.
    """
    steps = trace.steps
    start = steps["start_s"].fillna(steps["scheduled_s"]).astype(float)
    end = steps["end_s"].astype(float)
    frame = steps.assign(
        start=start,
        end=end,
        ms=(end - start) * 1000,
        tokens=steps["prefill_tokens"].fillna(0).astype(int) + steps["decode_tokens"].fillna(0).astype(int),
        activation_mib=steps["activation_bytes"].astype(float) / MIB,
    )
    return frame[start.notna() & end.notna()].sort_values("start", kind="stable").reset_index(drop=True)


def long_prefills(trace: Trace, long_tokens: int = LONG_PROMPT) -> pd.DataFrame:
    """Spans in which a long prompt was prefilled: ``request``, ``prompt_tokens``, ``start``, ``end`` (s), ``steps``.

    With step records a span is exact, and a prompt that was preempted and computed again has several. Without them
    (an attached server) it runs from the send to the first token, queueing included, and ``steps`` is null.
    """
    requests = trace.requests
    prompts = requests[requests["prompt_tokens"].fillna(0) >= long_tokens].set_index("request")["prompt_tokens"]
    batch = trace.batch
    batch = batch[batch["request"].isin(prompts.index)]
    steps = timeline(trace).drop_duplicates("step")[["step", "start", "end"]]
    rows = batch.merge(steps, on="step").sort_values(["request", "step"], kind="stable")
    columns = ["request", "prompt_tokens", "start", "end", "steps"]
    if len(rows):
        fresh = (rows["request"] != rows["request"].shift()) | (rows["prefill"] != rows["prefill"].shift())
        rows = rows.assign(span=fresh.cumsum())
        rows = rows[rows["prefill"].astype(bool)]
        spans = rows.groupby("span").agg(
            request=("request", "first"), start=("start", "min"), end=("end", "max"), steps=("step", "size")
        )
        return spans.assign(prompt_tokens=spans["request"].map(prompts))[columns].reset_index(drop=True)
    sent = requests[requests["request"].isin(prompts.index) & requests["sent_s"].notna()]
    last = sent["first_s"].fillna(sent["done_s"])
    spans = sent.assign(start=sent["sent_s"], end=last, steps=None)
    return spans[spans["end"].notna()][columns].reset_index(drop=True)


def revisions(trace: Trace, first_s: float = 0.0) -> pd.DataFrame:
    """Knob revisions as rules: ``t`` (s), ``label``, and the values in words.

    What was set before the run began is drawn once, at its left edge.
    """
    knobs = trace.knobs
    at = knobs["applied_s"].fillna(knobs["sent_s"]).astype(float)
    frame = knobs.assign(t=at)[at.notna()].sort_values(["t", "revision"], kind="stable")
    early = frame["t"] <= first_s
    frame = pd.concat([frame[early].tail(1).assign(t=first_s), frame[~early]])
    every = frame["prefill_every"].fillna(0)
    return pd.DataFrame(
        {
            "t": frame["t"],
            "label": [translate("rev {n}", n=n) for n in frame["revision"]],
            "revision": frame["revision"],
            "policy": frame["policy"],
            "budget": frame["budget"],
            "chunk": [f"{n:,.0f}" if n else translate("off") for n in frame["chunk"].fillna(0)],
            "running cap": frame["max_running"],
            "prefill every": [translate("{n:,.0f} steps", n=n) if n else "-" for n in every],
            "also": [further(row) for row in frame.to_dict("records")],
        }
    ).reset_index(drop=True)


def further(knobs: Mapping[str, Any]) -> str:
    """The rest of a knob revision in words: what is not at its default, and what its policy goes by; "-" is nothing.

    Args:
        knobs: fields of :class:`workbench.config.Knobs`, as a row of the ``knobs`` table has them; null is not known.
    """
    said = []
    for name, policy in _FURTHER.items():
        value: Any = knobs.get(name)
        field = Knobs.model_fields[name]
        told = knobs.get("policy") == policy if policy else value != field.default
        if pd.isna(value) or not told:
            continue
        facts = field.json_schema_extra
        label, unit = (facts.get("label"), facts.get("unit", "")) if isinstance(facts, dict) else (name, "")
        label, unit = translate(str(label)), translate(str(unit))
        if isinstance(field.default, bool):
            said.append(f"{label} {translate('on') if value else translate('off')}")
        else:
            said.append(f"{label} {100 * value:g} %" if name == "watermark" else f"{label} {value:,g} {unit}".strip())
    return " · ".join(said) or "-"


def hold_s(kept: pd.DataFrame, steps: pd.DataFrame) -> float:
    """How far a step that stands for its bucket reaches beyond its own end, s: 0 where no step was left out."""
    span = steps["end"].max() - steps["start"].min()
    return 3 * float(span) / len(kept) if len(kept) < len(steps) else 0.0


def bar_ends(steps: pd.DataFrame, look: Look, reach: float) -> NDArray[np.float64]:
    """Right edges of bars that begin where their steps do, s.

    Wide bars leave a pixel before the next, so that steps can be counted; narrow ones close up to it.

    Args:
        steps: in order.
        look: of the chart.
        reach: see :func:`hold_s`.
    """
    start, end = steps["start"].to_numpy(float), steps["end"].to_numpy(float)
    low, high = look.x_domain or (float(start.min()), float(end.max()))
    pixel = (high - low) / look.width
    following = np.append(start[1:], end[-1:])
    close = following - end < max(reach, pixel)
    edge = np.where(close, np.maximum(following, end), end)
    ends: NDArray[np.float64] = edge + np.where(edge - start > 5 * pixel, -pixel, np.where(close, 0.3 * pixel, 0.0))
    return ends


def run_span(trace: Trace) -> tuple[float, float]:
    """From the run's zero to the last thing that happened in it, s."""
    columns = (("tokens", "client_s"), ("steps", "end_s"), ("requests", "done_s"), ("requests", "sent_s"))
    ends = [pc.max(trace.tables[table][column]).as_py() for table, column in columns]
    return (0.0, max([end for end in ends if end is not None], default=1.0) or 1.0)


def on_span(look: Look, trace: Trace) -> Look:
    """The same look with a time axis over the whole run, where it has none yet."""
    return look if look.x_domain else replace(look, x_domain=run_span(trace))
