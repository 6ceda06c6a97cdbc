"""Step records become columns of the trace, and columns travel as Arrow: one Python object a step, not one a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from workbench.engine.probe import wire
from workbench.simulate.job import Activation, Ask
from workbench.trace import TABLES

KNOBS = ("budget", "chunk", "max_running", "policy", "prefill_every", "target_gap_ms", "aging_s", "watermark")
SWITCHES = ("reserve_full", "prefix_cache")


class Recorder:
    """Takes what the probe sends, and gives it as tables.

    Args:
        activation: memory of a step by its tokens; None leaves that column null.
        delivery_s: from the end of a step until the client has its tokens; 0 leaves the client's times null.

    Attributes:
        faults: errors of the probe and of policies.
        emitted: output tokens so far.
        starts: by step, when the device began it, as the loop has told.
    """

    dropped = 0

    def __init__(self, activation: Activation | None = None, delivery_s: float = 0.0) -> None:
        self.faults: list[str] = []
        self.emitted = self.preemptions = self.steps = 0
        self.starts: dict[int, float] = {}
        self._activation, self._delivery_s = activation, delivery_s
        self._names: list[str] = []
        self._code: dict[str, int] = {}
        self._made: list[int] = []  # output tokens by request
        self._steps: list[wire.Step] = []
        self._rows: dict[str, list[dict[str, Any]]] = {"requests": [], "knobs": []}
        self._quiet: set[int] = set()  # revisions that were in force before the play began

    def send(self, record: wire.Record) -> None:
        """Take a record of the probe."""
        if isinstance(record, wire.Step):
            self._steps.append(record)
            self.steps += 1
            self.preemptions += len(record.preempted)
        elif isinstance(record, wire.KnobReply):
            if record.error:
                self.faults.append(f"knobs: revision {record.revision} was refused: {record.error}")
            elif record.revision not in self._quiet:
                row = {"revision": record.revision, "step": record.step, "applied_s": record.applied_s}
                self._rows["knobs"].append(row)
        elif isinstance(record, wire.Fault):
            self.faults.append(f"{record.where}: {record.error}")

    def fault(self, where: str, error: BaseException) -> None:
        """Take an error of the probe itself."""
        self.faults.append(f"{where}: {type(error).__name__}: {error}")

    def knobs(self, change: wire.KnobChange, sent_s: float, *, in_force: bool = False) -> None:
        """Note knobs that were set; ``in_force`` is what the play begins with, which no step need confirm."""
        row = {name: getattr(change, name) for name in (*KNOBS, *SWITCHES)}
        row |= {"revision": change.revision, "sent_s": sent_s}
        if in_force:
            self._quiet.add(change.revision)
            row["applied_s"] = 0.0
        self._rows["knobs"].append(row)

    def request(self, ask: Ask, planned_s: float, **outcome: Any) -> None:
        """Note a request that has ended, or never began; what is left out is null."""
        self._rows["requests"].append(
            {
                "request": ask.request,
                "class": ask.class_name,
                "priority": ask.priority,
                "prompt_tokens": ask.prompt_tokens,
                "max_tokens": ask.output_tokens,
                "planned_s": planned_s,
                **outcome,
            }
        )

    @property
    def pending(self) -> int:
        """Steps that are not in a table yet."""
        return len(self._steps)

    def take(self) -> dict[str, bytes]:
        """The tables of what came since the last call, as Arrow IPC streams; empty ones are left out."""
        steps, self._steps = self._steps, []
        tables = self._step_tables(steps) if steps else {}
        for name, rows in self._rows.items():
            if rows:
                tables[name] = pa.Table.from_pylist(rows, schema=TABLES[name])
                self._rows[name] = []
        return {name: _packed(table) for name, table in tables.items()}

    def _step_tables(self, steps: list[wire.Step]) -> dict[str, pa.Table]:
        code = self._code
        for step in steps:
            for part in step.parts:
                if part.request not in code:
                    code[part.request] = len(code)
                    self._names.append(part.request)
                    self._made.append(0)
        parts = [part for step in steps for part in step.parts]
        sizes = np.array([len(step.parts) for step in steps])
        number = np.repeat(np.array([step.step for step in steps]), sizes)
        request = np.array([code[part.request] for part in parts], dtype=np.int32)
        tokens = np.array([part.tokens for part in parts], dtype=np.int32)
        prefill = np.array([part.prefill for part in parts], dtype=bool)
        emitted = np.array([part.emitted for part in parts], dtype=np.int32)
        batch = {
            "step": number,
            "request": self._texts(request),
            "tokens": tokens,
            "context": np.array([part.context for part in parts], dtype=np.int32),
            "prefill": prefill,
            "emitted": emitted,
        }
        first = np.concatenate(([0], np.cumsum(sizes)[:-1]))
        step_rows = self._step_rows(steps, first, sizes, tokens, prefill)
        ends = np.repeat(np.array(step_rows["end_s"]), sizes)
        sent = emitted > 0
        arrivals = self._token_rows(request[sent], emitted[sent], ends[sent], number[sent])
        return {"batch": _table("batch", batch), "steps": _table("steps", step_rows), "tokens": arrivals}

    def _step_rows(
        self, steps: list[wire.Step], first: np.ndarray, sizes: np.ndarray, tokens: np.ndarray, prefill: np.ndarray
    ) -> dict[str, Any]:
        def summed(values: np.ndarray) -> np.ndarray:
            """Sums over the parts of each step; ``reduceat`` would give an empty step its neighbour's."""
            padded = np.concatenate((values, [0]))
            return np.where(sizes > 0, np.add.reduceat(padded, first), 0)

        prefill_tokens, prefills = summed(tokens * prefill), summed(prefill.astype(np.int64))
        rows: dict[str, Any] = {
            "step": [step.step for step in steps],
            "scheduled_s": [step.scheduled_s for step in steps],
            "start_s": [self.starts.pop(step.step, None) for step in steps],
            "end_s": [step.end_s for step in steps],
            "prefill_tokens": prefill_tokens,
            "decode_tokens": summed(tokens) - prefill_tokens,
            "prefills": prefills,
            "decodes": sizes - prefills,
            "running": [step.running for step in steps],
            "waiting": [step.waiting for step in steps],
            "kv_use": [step.kv_use for step in steps],
            "preempted": [step.preempted for step in steps],
            "revision": [step.revision for step in steps],
            "predicted_ms": [step.predicted_ms for step in steps],
        }
        if self._activation is not None:
            a, total = self._activation, summed(tokens).astype(np.float64)
            rows["activation_bytes"] = a.scale * total**a.exponent + np.minimum(total, a.rows) * a.row_bytes
            rows["activation_bytes"] = rows["activation_bytes"].astype(np.int64)
        return rows

    def _token_rows(self, request: np.ndarray, n: np.ndarray, end_s: np.ndarray, step: np.ndarray) -> pa.Table:
        index, made = [], self._made
        for one, count in zip(request.tolist(), n.tolist(), strict=True):
            index.append(made[one])
            made[one] += count
        self.emitted += int(n.sum())
        columns = {"request": self._texts(request), "index": index, "n": n, "engine_s": end_s, "step": step}
        return _table("tokens", columns | ({"client_s": end_s + self._delivery_s} if self._delivery_s else {}))

    def _texts(self, codes: np.ndarray) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(self._names, pa.string())).cast(pa.string())


def unpacked(data: bytes) -> pa.Table:
    """A table from its Arrow IPC stream."""
    with pa.ipc.open_stream(data) as stream:
        return stream.read_all()


def as_rows(table: pa.Table) -> list[dict[str, Any]]:
    """A table as a sink takes it: rows without the columns that are null throughout."""
    names = [name for name in table.schema.names if table[name].null_count < table.num_rows]
    columns = [_values(table[name]) for name in names]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Plain values; by way of numpy where that loses nothing, since it is ten times as fast."""
    kind = column.type
    if not column.null_count and (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        values: list[Any] = column.to_numpy().tolist()
        return values
    plain: list[Any] = column.to_pylist()
    return plain


def _table(name: str, columns: Mapping[str, Any]) -> pa.Table:
    schema = TABLES[name]
    rows = len(next(iter(columns.values())))
    return pa.table(
        [
            pa.array(columns[field.name], field.type) if field.name in columns else pa.nulls(rows, field.type)
            for field in schema
        ],
        schema=schema,
    )


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    packed: bytes = sink.getvalue().to_pybytes()
    return packed
