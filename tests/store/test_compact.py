"""A run that is closed piece by piece holds what one has that is sorted and stamped at a stretch."""

import random

import pyarrow.parquet as pq
import pytest

from workbench.store import compact, in_order, open_run
from workbench.store.writer import RunWriter
from workbench.trace import TABLES


@pytest.fixture
def streamed(tmp_path):
    """A run of 40 streams x 60 tokens with its steps, in many small batches; the client reads some of them late."""
    writer, draw = RunWriter(tmp_path / "run", flush_s=60.0), random.Random(5)
    names = [f"r{i}" for i in range(40)]
    writer.rows("requests", [{"request": name, "planned_s": i / 100} for i, name in enumerate(names)])
    for k in range(60):
        end = 0.1 * (k + 1)
        writer.rows("batch", [{"step": k, "request": name, "tokens": 1, "emitted": 1} for name in names])
        writer.rows("steps", [{"step": k, "end_s": end, "preempted": []}])
        arrived = [{"request": n, "index": k, "n": 1, "client_s": end + draw.random() / 5} for n in names]
        writer.rows("tokens", arrived[: 40 - k % 3])
        writer.rows("client", [{"t_s": end, "late_s": 0.006}])
        writer.rows("memory", [{"t_s": end - k % 2, "source": "host", "bytes": k}])
        writer.flush()
    writer.rows("requests", [{"request": name, "status": "ok", "output_tokens": 60} for name in names])
    writer.flush()
    return writer


def test_it_is_what_sorting_and_stamping_all_at_once_gives(streamed, monkeypatch):
    monkeypatch.setattr(in_order, "GROUP_ROWS", 100)
    monkeypatch.setattr(compact, "in_order", lambda batches, by: in_order.in_order(batches, by, 100))
    tables, torn = compact.read_streams(streamed.folder)
    at_once = compact.finish(tables)
    streamed.close()
    trace = open_run(streamed.folder)
    assert trace.meta["torn"] == torn == []
    for name in TABLES:
        assert trace.tables[name].combine_chunks().equals(at_once[name].combine_chunks()), name
    assert trace.meta["rows"] == {name: table.num_rows for name, table in at_once.items()}
    tokens = trace.tokens
    assert (tokens["step"] == tokens["index"]).all(), "the k-th step made the k-th token of each stream"
    assert tokens["client_s"].is_monotonic_increasing
    assert pq.ParquetFile(streamed.folder / "tokens.parquet").num_row_groups > 5
