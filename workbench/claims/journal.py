"""The journal of a run: which requests held KV before each step, and how far each of them was."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from workbench.claims.verdict import Measured
from workbench.errors import InputError
from workbench.metrics.gaps import Floats, Ints
from workbench.metrics.step_table import StepTable
from workbench.trace import Trace, floats


@dataclass(frozen=True)
class Journal:
    """Steps of a run, request by request. Requests are places in ``table.names``, steps are positions in ``table``.

    Attributes:
        table: the steps.
        trace: where they are from.
        at: for each request the steps that computed tokens of it, ascending.
        done: for each of these, tokens with KV after it.
        emitted: likewise, output tokens that it made.
        prefill: likewise, tokens that were prefill (computed again after a preemption is); 0 in a decode.
        lost: for each request the steps in whose planning it was preempted.
    """

    table: StepTable
    trace: Trace
    at: list[Ints]
    done: list[Floats]
    emitted: list[Ints]
    prefill: list[Floats]
    lost: list[list[int]]

    @classmethod
    def of(cls, run: Measured) -> Self:
        """Read it.

        Raises:
            InputError: the run has no step records.
        """
        table = StepTable.of(run.trace)
        if not len(table.number) or not len(table.part_step):
            raise InputError("run", "no step records", "step records", "play it on a live engine")
        order = table.by_request
        cuts = np.searchsorted(table.part_of[order], np.arange(1, len(table.names)))
        lost: list[list[int]] = [[] for _ in table.names]
        for step, of in zip(table.victim_step.tolist(), table.victim_of.tolist(), strict=True):
            lost[of].append(step)
        computed = np.where(table.part_prefill, table.part_tokens, 0.0)
        return cls(
            table=table,
            trace=run.trace,
            at=np.split(table.part_step[order], cuts),
            done=np.split((table.part_context + table.part_tokens)[order], cuts),
            emitted=np.split(table.part_emitted[order], cuts),
            prefill=np.split(computed[order], cuts),
            lost=lost,
        )

    def running(self, step: int) -> dict[int, float]:
        """Requests that held KV when a step was planned, with how many tokens of it.

        Left out is who had not begun, who was preempted and not back yet, and who had ended: a request that never
        appears again, neither in a step nor as a victim, has.
        """
        found = {}
        for one, at in enumerate(self.at):
            before = int(np.searchsorted(at, step))
            lost = bisect_left(self.lost[one], step)
            gone = lost > 0 and (before == 0 or at[before - 1] < self.lost[one][lost - 1])
            ended = before == len(at) and lost == len(self.lost[one])
            if before and not gone and not ended:
                found[one] = float(self.done[one][before - 1])
        return found

    @cached_property
    def revision(self) -> Floats:
        """Knob revision in force at each step; NaN is unknown."""
        return floats(self.trace.tables["steps"]["revision"])[self.table.row]

    @cached_property
    def policy(self) -> list[str | None]:
        """Policy in force at each step; none is unknown."""
        known = self._knobs("policy")
        return [None if np.isnan(revision) else known.get(int(revision)) for revision in self.revision]

    def knob(self, name: str) -> Floats:
        """A hot knob that is a number, at each step; NaN is unknown."""
        known = {revision: value for revision, value in self._knobs(name).items() if value is not None}
        found = [np.nan if np.isnan(revision) else known.get(int(revision), np.nan) for revision in self.revision]
        return np.array(found, dtype=np.float64)

    def of_request(self, column: str) -> Floats:
        """A column of numbers of the table ``requests``, for each request; NaN is unknown."""
        table = self.trace.tables["requests"]
        known = dict(zip(table["request"].to_pylist(), floats(table[column]).tolist(), strict=True))
        return np.array([known.get(name, np.nan) for name in self.table.names], dtype=np.float64)

    def _knobs(self, name: str) -> dict[int, Any]:
        table = self.trace.tables["knobs"]
        return dict(zip(table["revision"].to_pylist(), table[name].to_pylist(), strict=True))
