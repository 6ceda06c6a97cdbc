"""The steps of a trace and what each of them held, as numpy arrays that all metrics share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from workbench.metrics.gaps import Floats, Ints, encode, in_groups
from workbench.trace import Trace, floats

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class StepTable:
    """Steps in the order in which they ended, and their parts (one request in one step) in the order of the steps.

    A *position* is a place in the arrays of steps. Steps without a number or an end are left out, and so are parts
    whose step is not there (its record was lost, or is not in yet).

    Attributes:
        row: where each step is in the trace's table ``steps``.
        number: of each step, counted by the engine.
        scheduled_s: when the scheduler planned it; where that is not known, when it began.
        begin_s: when it began to compute. With two steps in flight one computes at a time: never before the last end.
        end_s: when the scheduler had its output.
        seconds: it took, from begin to end.
        prefill_tokens: of each step; NaN is unknown.
        decode_tokens: likewise.
        kv_use: share of KV blocks in use, 0..1; NaN is unknown.
        names: requests that parts and victims belong to.
        part_step: for each part, the position of its step; ascending.
        part_of: whose it is, in ``names``.
        part_tokens: tokens computed.
        part_context: tokens with KV before the step; NaN is unknown.
        part_prefill: whether it was prefill (recompute after a preemption is).
        part_emitted: output tokens that the step made for it.
        victim_step: for each preemption that was recorded, the position of the step in whose planning it happened.
        victim_of: who was preempted, in ``names``.
        records_victims: whether preemptions were recorded at all.
    """

    row: Ints
    number: Ints
    scheduled_s: Floats
    begin_s: Floats
    end_s: Floats
    seconds: Floats
    prefill_tokens: Floats
    decode_tokens: Floats
    kv_use: Floats
    names: list[str]
    part_step: Ints
    part_of: Ints
    part_tokens: Floats
    part_context: Floats
    part_prefill: Bools
    part_emitted: Ints
    victim_step: Ints
    victim_of: Ints
    records_victims: bool

    @classmethod
    def of(cls, trace: Trace) -> StepTable:
        """Compute it; linear in the rows of ``steps`` and ``batch`` where those are in order."""
        table, batch = trace.tables["steps"], trace.tables["batch"]
        number, end = floats(table["step"]), floats(table["end_s"])
        row = np.flatnonzero(np.isfinite(number) & np.isfinite(end))
        row = row[_ascending(end[row])]
        number, end = number[row], end[row]
        start, scheduled = floats(table["start_s"])[row], floats(table["scheduled_s"])[row]
        before = np.concatenate(([-np.inf], end[:-1]))
        begin = np.where(np.isnan(start), scheduled, start)
        begin = np.fmin(np.where(np.isnan(begin), end, np.fmax(begin, before)), end)

        lists = table["preempted"].combine_chunks()
        victims = pc.list_flatten(lists)
        names, of = encode(pa.chunked_array([*batch["request"].chunks, victims], pa.string()))
        of_part, of_victim = of[: batch.num_rows], of[batch.num_rows :]
        by_number = _ascending(number)
        step = _find(number, by_number, floats(batch["step"]))
        part = np.flatnonzero((step >= 0) & (of_part >= 0))
        part = part[_ascending(step[part])]
        place = np.full(table.num_rows, -1, np.int64)
        place[row] = np.arange(len(row))
        victim_step = place[pc.list_parent_indices(lists).to_numpy(zero_copy_only=False)]
        known = np.flatnonzero((victim_step >= 0) & (of_victim >= 0))
        known = known[_ascending(victim_step[known])]
        return cls(
            row=row,
            number=number.astype(np.int64),
            scheduled_s=np.where(np.isnan(scheduled), begin, scheduled),
            begin_s=begin,
            end_s=end,
            seconds=end - begin,
            prefill_tokens=floats(table["prefill_tokens"])[row],
            decode_tokens=floats(table["decode_tokens"])[row],
            kv_use=floats(table["kv_use"])[row],
            names=names,
            part_step=step[part],
            part_of=of_part[part],
            part_tokens=np.nan_to_num(floats(batch["tokens"])[part]),
            part_context=floats(batch["context"])[part],
            part_prefill=batch["prefill"].fill_null(False).to_numpy()[part],
            part_emitted=np.nan_to_num(floats(batch["emitted"])[part]).astype(np.int64),
            victim_step=victim_step[known],
            victim_of=of_victim[known],
            records_victims=lists.null_count < len(lists),
        )

    @cached_property
    def by_request(self) -> Ints:
        """Parts in the order of their requests, and of the steps within a request."""
        return in_groups(self.part_of)

    @cached_property
    def had_output(self) -> Bools:
        """For each part in the order of ``by_request``, whether its request had made output before."""
        owner, emitted = self.part_of[self.by_request], self.part_emitted[self.by_request]
        before = np.cumsum(emitted) - emitted
        found: Bools = before > before[np.searchsorted(owner, owner)]
        return found

    @cached_property
    def where(self) -> dict[str, int]:
        """Place of each request in ``names``."""
        return {name: i for i, name in enumerate(self.names)}


def _ascending(values: NDArray[np.float64] | Ints) -> Ints:
    """Order that sorts values and keeps equals as they were; free where they are sorted."""
    if bool((values[1:] >= values[:-1]).all()):
        return np.arange(len(values))
    return np.argsort(values, kind="stable")


def _find(values: Floats, order: Ints, wanted: Floats) -> Ints:
    """Where each wanted number is among the values that ``order`` sorts; -1 is nowhere."""
    if not len(values):
        return np.full(len(wanted), -1, np.int64)
    at = order[np.minimum(np.searchsorted(values[order], wanted), len(values) - 1)]
    return np.where(values[at] == wanted, at, -1)
