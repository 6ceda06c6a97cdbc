"""The trace: the only thing that metrics, charts, tuner and reports read.

A live, an attached and a simulated trace have the same tables and differ only in which columns are null.
Times are CLOCK_MONOTONIC seconds from the run's zero, memory is in bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

SCHEMA_VERSION = 1
CLOCK_SLACK_S = 1e-3  # two processes read the same clock; this is the room for its grain

_S, _I, _N, _B = pa.float64(), pa.int64(), pa.int32(), pa.bool_()
_TEXT = pa.string()

TABLES: dict[str, pa.Schema] = {
    # One row a request. Nulls: it never got that far.
    "requests": pa.schema(
        {
            "request": _TEXT,
            "class": _TEXT,
            "priority": _N,
            "prompt_tokens": _N,
            "max_tokens": _N,
            "planned_s": _S,  # arrival that the workload planned
            "sent_s": _S,  # the client sent it
            "first_s": _S,  # first output arrived
            "last_s": _S,  # last output arrived
            "done_s": _S,  # the stream ended
            "output_tokens": _N,
            "cached_tokens": _N,  # prompt tokens found in the prefix cache
            "status": _TEXT,  # ok, error, cancelled, unfinished
            "finish_reason": _TEXT,
            "error": _TEXT,
        }
    ),
    # One row an arrival of output: tokens index .. index + n - 1 of the request.
    "tokens": pa.schema(
        {
            "request": _TEXT,
            "index": _N,
            "n": _N,
            "client_s": _S,
            "engine_s": _S,  # end of the step that made the last of them
            "step": _I,  # that step
        }
    ),
    # One row a scheduler step that ran at least one token.
    "steps": pa.schema(
        {
            "step": _I,
            "scheduled_s": _S,  # schedule() was entered
            "start_s": _S,  # the worker began
            "end_s": _S,  # the scheduler had its output
            "prefill_tokens": _N,
            "decode_tokens": _N,
            "prefills": _N,  # requests that prefilled
            "decodes": _N,  # requests that decoded
            "running": _N,
            "waiting": _N,
            "kv_use": pa.float32(),  # share of KV blocks in use, 0..1
            "preempted": pa.list_(_TEXT),
            "revision": _I,  # knob revision in force
            "schedule_us": pa.float32(),  # time inside vLLM's own schedule()
            "probe_us": pa.float32(),  # what our probe added to the step
            "predicted_ms": pa.float32(),  # what the policy expected from start to end, where it predicts
            "memory_before_bytes": _I,
            "memory_peak_bytes": _I,
            "memory_after_bytes": _I,
            "activation_bytes": _I,  # peak - max(before, after): what the step needed and gave back
        }
    ),
    # One row for each request in each step: the make-up of every batch.
    "batch": pa.schema(
        {
            "step": _I,
            "request": _TEXT,
            "tokens": _N,
            "context": _N,  # tokens with KV before the step
            "prefill": _B,
            "emitted": _N,  # output tokens that the step made for it
        }
    ),
    # One row each time the client's event loop ran late: what arrived meanwhile was read late, not sent late.
    # The first reading of a run is always there: an empty table says that nobody measured.
    "client": pa.schema({"t_s": _S, "late_s": _S}),  # t_s: when it noticed
    # One row a reading of an attached server's /metrics. Counters count from the first reading; null: it does not say.
    "server": pa.schema(
        {
            "t_s": _S,
            "running": _I,
            "waiting": _I,
            "kv_use": _S,  # share of the KV pool in use, 0..1
            "prompt_tokens": _I,
            "output_tokens": _I,
            "cached_tokens": _I,  # of prompts, found in the prefix cache
            "preemptions": _I,
            "requests": _I,  # that ended (vLLM) or came (SGLang)
        }
    ),
    "memory": pa.schema({"t_s": _S, "source": _TEXT, "bytes": _I, "note": _TEXT}),
    "knobs": pa.schema(
        {
            "revision": _I,
            "sent_s": _S,
            "applied_s": _S,
            "step": _I,  # first step that ran under it
            "budget": _N,
            "chunk": _N,
            "max_running": _N,
            "policy": _TEXT,
            "prefill_every": _N,
            "target_gap_ms": _S,
            "aging_s": _S,
            "watermark": _S,
            "reserve_full": _B,
            "prefix_cache": _B,
        }
    ),
}


class Sink(Protocol):
    """Where an engine puts what it measures, while it runs."""

    def rows(self, table: str, rows: list[dict[str, Any]]) -> None:
        """Take rows of one table of :data:`TABLES`; keys that are left out are null. Never blocks for long."""


@dataclass(frozen=True)
class Trace:
    """One run in memory.

    Attributes:
        tables: a pyarrow table for each name in :data:`TABLES`, with exactly that schema.
        meta: the run's metadata (id, label, config, workload, machine, versions, SLO, status).
    """

    tables: Mapping[str, pa.Table]
    meta: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def empty(cls, meta: Mapping[str, Any] | None = None) -> Trace:
        """A trace in which nothing happened: every table without rows."""
        return cls({name: schema.empty_table() for name, schema in TABLES.items()}, dict(meta or {}))

    @property
    def requests(self) -> pd.DataFrame:
        """One row a request."""
        return self.tables["requests"].to_pandas()

    @property
    def tokens(self) -> pd.DataFrame:
        """One row an arrival of output."""
        return self.tables["tokens"].to_pandas()

    @property
    def steps(self) -> pd.DataFrame:
        """One row a scheduler step."""
        return self.tables["steps"].to_pandas()

    @property
    def batch(self) -> pd.DataFrame:
        """One row for each request in each step."""
        return self.tables["batch"].to_pandas()

    @property
    def client(self) -> pd.DataFrame:
        """One row each time the client's event loop ran late."""
        return self.tables["client"].to_pandas()

    @property
    def memory(self) -> pd.DataFrame:
        """One row a memory sample."""
        return self.tables["memory"].to_pandas()

    @property
    def server(self) -> pd.DataFrame:
        """One row a reading of an attached server's ``/metrics``."""
        return self.tables["server"].to_pandas()

    @property
    def knobs(self) -> pd.DataFrame:
        """One row a knob revision."""
        return self.tables["knobs"].to_pandas()


def table_of(name: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    """Build the pyarrow table ``name`` from rows; keys left out become null, unknown keys are an error."""
    schema = TABLES[name]
    rows = list(rows)
    unknown = {key for row in rows for key in row} - set(schema.names)
    if unknown:
        raise KeyError(f"table {name!r} has no column {sorted(unknown)}")
    return pa.Table.from_pylist(rows, schema=schema)


def floats(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """A numeric column as floats, null as NaN."""
    return np.asarray(column.to_numpy(), dtype=np.float64)
