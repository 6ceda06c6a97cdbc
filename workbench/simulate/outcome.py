"""Playing a whole job at once, for those who want its tables and no live view: planner, validation, benchmarks."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from workbench.errors import EngineDiedError, EngineError
from workbench.simulate.host import Simulator
from workbench.simulate.job import Cancel, Ended, Report, Rows, SimJob
from workbench.simulate.rows import unpacked
from workbench.store.compact import finish
from workbench.trace import TABLES, Trace

_END_S = 5.0  # for a cancelled job to end, so that the next one can begin


@dataclass(frozen=True)
class Outcome:
    """What came of a job.

    Attributes:
        tables: those of a trace, partial rows merged.
        facts: what was counted beside them: ``virtual_s``, ``steps``, ``preemptions``, blocks swapped.
        faults: errors of the probe and of policies.
    """

    tables: Mapping[str, pa.Table]
    facts: Mapping[str, float] = field(default_factory=dict)
    faults: tuple[str, ...] = ()

    def trace(self, **meta: Any) -> Trace:
        """As a trace labelled "simulated", for metrics and charts."""
        return Trace(self.tables, {"label": "simulated", "status": "complete", **meta})

    def as_bytes(self) -> bytes:
        """All tables as Arrow IPC, one after the other: equal outcomes are equal bytes."""
        sink = pa.BufferOutputStream()
        for name, schema in TABLES.items():
            with pa.ipc.new_stream(sink, schema) as stream:
                stream.write_table(self.tables[name].combine_chunks())
        packed: bytes = sink.getvalue().to_pybytes()
        return packed


def play_job(
    simulator: Simulator,
    job: SimJob,
    progress: Callable[[Rows], None] | None = None,
    timeout_s: float | None = None,
) -> Outcome:
    """Play a job to its end; Ctrl-C cancels it.

    Args:
        simulator: one that was started, and plays nothing.
        job: its number is set here.
        progress: told how far it is, some times a second, in another thread.
        timeout_s: longest time on the wall.

    Raises:
        EngineError: it could not be played to the end, or took too long.
        EngineDiedError: the child ended.
    """
    job.number = simulator.number()
    parts: dict[str, list[pa.Table]] = {name: [schema.empty_table()] for name, schema in TABLES.items()}
    over: list[Ended] = []
    done = threading.Event()

    def hear(report: Report) -> None:
        if isinstance(report, Rows):
            for name, data in report.tables.items():
                parts[name].append(unpacked(data))
            if progress is not None:
                progress(report)
        elif isinstance(report, Ended):
            over.append(report)
            done.set()

    simulator.submit(job, hear)
    in_time = False
    try:
        in_time = done.wait(timeout_s)
    finally:
        if not in_time:
            with contextlib.suppress(EngineError):
                simulator.send(Cancel(job.number))
    if not in_time:
        done.wait(_END_S)
        raise EngineError(f"simulator: job not done after {timeout_s:g} s, expected less; give it more time")
    if over[0].error is not None:
        raise (EngineError if simulator.running else EngineDiedError)(f"simulator: {over[0].error}")
    tables = finish({name: pa.concat_tables(some) for name, some in parts.items()})
    return Outcome(tables, over[0].facts, tuple(over[0].faults))
