"""Run folders and exported tables that somebody changed: a named error or a trace, and nothing written elsewhere."""

from __future__ import annotations

import json
import os
import shutil
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from damage import DEEP_JSON, FUZZ, encoded, mangled, misshapen, named, tree
from hypothesis import given
from hypothesis import strategies as st

from workbench.errors import WorkbenchError
from workbench.exchange import read_csv, read_parquet, write_csv, write_parquet
from workbench.run import RecordedRun
from workbench.store import RunWriter, catalogue, delete_run, list_runs, open_run
from workbench.trace import TABLES

numbers = count()
META = {
    "label": "live CPU",
    "scenario": "chat_and_long",
    "question": "What?",
    "setting": "budget 256",
    "slo": {"ttft_ms": 2000.0, "gap_ms": 200.0},
    "engine": {
        "label": "live CPU",
        "config": {"dtype": "float32", "quantization": None},
        "serve_command": "vllm serve x",
        "memory_split": {"rank": 0, "weights_bytes": 1, "kv_bytes": 2},
        "resolved": {"block_size": 16},
        "decode_floor_ms": 20.0,
        "probe_dropped": 0,
        "simulated": {"step_time_label": "uncalibrated"},
    },
    "compute": {
        "architecture": {
            "name": "small",
            "layers": 4,
            "hidden": 256,
            "heads": 4,
            "kv_heads": 1,
            "head_dim": 64,
            "value_dim": 64,
            "intermediate": 512,
            "vocab": 1000,
            "tied": True,
            "qkv_bias": False,
        },
        "peak": {"flops_per_s": 1e12, "source": "measured"},
        "bandwidth": {"bytes_per_s": 1e10, "source": "published"},
        "host_bytes_per_s": None,
        "missing": {"host_bytes_per_s": "none"},
        "device": None,
    },
    "machine": {"processor": "x", "usable_cores": 2},
    "seed": 3,
    "workload": {"scenario": {"name": "chat_and_long"}, "traces": {}},
}
ROWS = {
    "requests": [{"request": "a", "class": "chat", "planned_s": 0.0, "sent_s": 0.0, "first_s": 1.01, "last_s": 2.01,
                  "done_s": 2.02, "status": "ok", "output_tokens": 2, "prompt_tokens": 9, "max_tokens": 2}],
    "tokens": [{"request": "a", "index": i, "n": 1, "client_s": i + 1.01} for i in (0, 1)],
    "steps": [{"step": s, "start_s": s - 0.5, "end_s": float(s), "preempted": []} for s in (1, 2)],
    "batch": [{"step": s, "request": "a", "tokens": 1, "context": 9, "prefill": False, "emitted": 1} for s in (1, 2)],
    "memory": [{"t_s": 0.1, "source": "host", "bytes": 123}],
    "knobs": [{"revision": 0, "sent_s": 0.0, "applied_s": 0.0, "budget": 256, "policy": "chunked"}],
}  # fmt: skip


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    """A small run that ended."""
    folder = tmp_path_factory.mktemp("good") / "run"
    with RunWriter(folder, META) as writer:
        for name, rows in ROWS.items():
            writer.rows(name, rows)
    return folder


@pytest.fixture(scope="module")
def streaming(tmp_path_factory):
    """One whose writer was killed."""
    folder = tmp_path_factory.mktemp("cut") / "run"
    writer = RunWriter(folder, META)
    for name, rows in ROWS.items():
        writer.rows(name, rows)
    writer.flush()
    kept = folder.with_name("kept")
    shutil.copytree(folder, kept)
    writer.close()
    meta = json.loads((kept / "run.json").read_text())
    meta["writer"]["start"] = 1
    (kept / "run.json").write_text(json.dumps(meta))
    return kept


def fresh(tmp_path, good):
    return Path(shutil.copytree(good, tmp_path / f"{next(numbers)}" / "runs" / "20260101-000000-000-run"))


def look(folder):
    """All that is asked of a run before it is drawn."""
    root = folder.parent
    outside = tree(root.parent) - tree(root)
    run = named(lambda: RecordedRun(folder).meta and RecordedRun(folder))
    if not isinstance(run, WorkbenchError):
        for what in (
            "slo",
            "summary",
            "kpis",
            "requests",
            "stalls",
            "classes",
            "history",
            "preemptions",
            "mfu",
            "floors",
        ):
            named(lambda what=what: getattr(run, what))
        named(lambda: repr(run).encode())
    found = list_runs(root)
    assert len(found) == 1
    found.to_json(orient="records", date_format="iso")
    named(lambda: catalogue(root).execute("SELECT * FROM runs").fetchall())
    assert tree(root.parent) - tree(root) == outside


@FUZZ
@given(data=st.data())
def test_run_json_values(tmp_path, good, data):
    folder = fresh(tmp_path, good)
    meta = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_bytes(encoded(data.draw(misshapen(meta))))
    look(folder)


@FUZZ
@given(data=st.data())
def test_run_json_bytes(tmp_path, good, data):
    folder = fresh(tmp_path, good)
    (folder / "run.json").write_bytes(data.draw(mangled((folder / "run.json").read_bytes())))
    look(folder)


@pytest.mark.parametrize("deep", DEEP_JSON, ids=["lists", "objects", "closed"])
def test_run_json_nested_without_end(tmp_path, good, deep):
    folder = fresh(tmp_path, good)
    (folder / "run.json").write_text(deep)
    with pytest.raises(WorkbenchError, match="damaged"):
        open_run(folder)
    look(folder)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["run.json", "tokens.parquet"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path, good, name):
    folder = fresh(tmp_path, good)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert isinstance(named(lambda: open_run(folder)), WorkbenchError)


@pytest.mark.timeout(60)
def test_a_pipe_in_place_of_a_stream_is_not_waited_for(tmp_path, streaming):
    folder = fresh(tmp_path, streaming)
    (folder / "tokens.arrows").unlink()
    os.mkfifo(folder / "tokens.arrows")
    assert isinstance(named(lambda: open_run(folder)), WorkbenchError)


def test_a_link_in_a_run_folder_leads_to_no_write_elsewhere(tmp_path, streaming):
    folder = fresh(tmp_path, streaming)
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    for name in ("tokens.parquet", "requests.parquet", ".reserve"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(victim)
    trace = open_run(folder)
    assert trace.tables["tokens"].num_rows == 2
    assert victim.read_bytes() == b"mine"
    assert not (folder / "tokens.parquet").is_symlink()


columns = st.one_of(
    st.lists(st.none() | st.text(max_size=3), min_size=2, max_size=2).map(lambda x: pa.array(x, pa.string())),
    st.lists(st.none() | st.floats(), min_size=2, max_size=2).map(lambda x: pa.array(x, pa.float64())),
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=2).map(
        lambda x: pa.array(x, pa.int64())
    ),
    st.just(pa.array([[1], [2]])),
    st.just(pa.array([b"\xff", b"\xc3\x28"], pa.binary())),
    st.just(pa.array([{"a": 1}, None])),
    st.just(pa.array([None, None])),
    st.just(pa.array([True, None])),
)


@st.composite
def strange_table(draw, schema):
    """Two rows under names of a table, some of them missing, doubled or of another type."""
    names = draw(st.lists(st.sampled_from([*schema.names, "more"]), min_size=1, max_size=len(schema.names) + 2))
    made = [
        pa.nulls(2, schema.field(name).type) if name in schema.names and draw(st.booleans()) else draw(columns)
        for name in names
    ]
    return pa.Table.from_arrays(made, names=names)


@FUZZ
@given(data=st.data())
def test_parquet_columns(tmp_path, good, data):
    folder = fresh(tmp_path, good)
    name = data.draw(st.sampled_from(sorted(TABLES)))
    pq.write_table(data.draw(strange_table(TABLES[name])), folder / f"{name}.parquet")
    look(folder)


@FUZZ
@given(data=st.data())
def test_parquet_bytes(tmp_path, good, data):
    folder = fresh(tmp_path, good)
    path = folder / f"{data.draw(st.sampled_from(['tokens', 'requests', 'steps']))}.parquet"
    path.write_bytes(data.draw(mangled(path.read_bytes())))
    look(folder)


@FUZZ
@given(data=st.data())
def test_streams(tmp_path, streaming, data):
    folder = fresh(tmp_path, streaming)
    path = folder / f"{data.draw(st.sampled_from(['tokens', 'requests', 'steps']))}.arrows"
    path.write_bytes(data.draw(mangled(path.read_bytes())))
    look(folder)


@FUZZ
@given(data=st.data())
def test_exported_tables(tmp_path, good, data):
    trace = open_run(good)
    write, read, suffix = data.draw(
        st.sampled_from([(write_csv, read_csv, "csv"), (write_parquet, read_parquet, "parquet")])
    )
    folder = write(trace, tmp_path / f"{next(numbers)}")
    path = folder / data.draw(st.sampled_from([f"tokens.{suffix}", f"steps.{suffix}", "meta.json"]))
    path.write_bytes(data.draw(mangled(path.read_bytes())))
    named(lambda: read(folder))


@FUZZ
@given(
    name=st.one_of(
        st.text(max_size=12),
        st.sampled_from(["..", ".", "../x", "/etc", "a/../..", "\x00", "x" * 5000, "~", "\ud800", "é"]),
    )
)
def test_ids_of_runs(tmp_path, good, name):
    root = tmp_path / f"{next(numbers)}"
    root.mkdir()
    (root / "inside").mkdir()
    outside = tmp_path / "keep.txt"
    outside.write_text("x")
    error = named(lambda: delete_run(root / "inside", name))
    assert isinstance(error, WorkbenchError)
    assert outside.exists()


def test_names_that_move_a_cursor_are_letters_in_what_is_opened(tmp_path, good):
    folder, bad = fresh(tmp_path, good), "a\x1b[31m\u202e"
    for name, row in {"requests": 0, "tokens": 0}.items():
        table = open_run(good).tables[name]
        texts = pa.array([bad] * table.num_rows, pa.string())
        pq.write_table(table.set_column(row, "request", texts), folder / f"{name}.parquet")
    steps = open_run(good).tables["steps"]
    at = steps.schema.get_field_index("preempted")
    victims = pa.array([[bad, None, "b"], None], steps.schema.field(at).type)
    pq.write_table(steps.set_column(at, "preempted", victims), folder / "steps.parquet")
    trace = open_run(folder)
    assert trace.tables["requests"]["request"].to_pylist() == ["a?[31m?"]
    assert trace.tables["tokens"]["request"].to_pylist() == ["a?[31m?"] * 2
    assert trace.tables["steps"]["preempted"].to_pylist() == [["a?[31m?", None, "b"], None]
    assert trace.tables["steps"].schema == TABLES["steps"]
