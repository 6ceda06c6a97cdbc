from __future__ import annotations

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workbench.errors import RunNotFoundError, StoreError
from workbench.store import RunWriter, open_run, owner
from workbench.store.streams import StreamFile, conform, read_stream
from workbench.trace import SCHEMA_VERSION, TABLES, table_of


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def test_a_crashed_run_is_recovered_once(tmp_path, write, rows):
    folder = write(tmp_path / "run", crash=True)
    trace = open_run(folder)
    assert trace.meta["status"] == "interrupted"
    assert "without closing" in trace.meta["reason"]
    assert trace.meta["duration_s"] >= 0
    assert {name: table.num_rows for name, table in trace.tables.items()} == {n: len(r) for n, r in rows.items()}
    assert trace.tokens["engine_s"].tolist() == [1.0, 2.0]
    assert {path.name for path in folder.iterdir()} == {"run.json", *(f"{name}.parquet" for name in TABLES)}
    before = contents(folder)
    again = open_run(folder)
    assert contents(folder) == before
    assert again.meta == trace.meta
    assert all(again.tables[name].equals(trace.tables[name]) for name in TABLES)


def test_a_running_run_is_read_as_it_is_and_not_touched(tmp_path, rows):
    writer = RunWriter(tmp_path / "run", {"label": "x"}, flush_s=60)
    for name in ("tokens", "batch", "steps"):
        writer.rows(name, rows[name])
    writer.flush()
    before = contents(tmp_path / "run")
    trace = open_run(tmp_path / "run")
    assert contents(tmp_path / "run") == before
    assert (trace.meta["status"], trace.meta["label"]) == ("running", "x")
    assert trace.tokens["step"].tolist() == [1, 2]
    writer.close()
    assert open_run(tmp_path / "run").meta["status"] == "complete"


RUNNING = """
import sys
from workbench.store import RunWriter
with RunWriter(sys.argv[1]) as writer:
    writer.rows("memory", [{"t_s": 1.0}])
    writer.flush()
    print("ready", flush=True)
    sys.stdin.readline()
"""


def test_a_run_of_another_live_process_is_a_snapshot(tmp_path, python):
    child = python(RUNNING, tmp_path / "run", stdin=-1)
    assert child.stdout.readline() == "ready\n"
    before = contents(tmp_path / "run")
    trace = open_run(tmp_path / "run")
    assert trace.meta["status"] == "running"
    assert trace.memory["t_s"].tolist() == [1.0]
    assert contents(tmp_path / "run") == before
    child.communicate("\n", timeout=60)
    assert open_run(tmp_path / "run").meta["status"] == "complete"


def test_a_later_process_with_the_same_pid_is_not_the_writer(tmp_path, python, write):
    folder = write(tmp_path / "run", crash=True)
    child = python("import sys; sys.stdin.readline()", stdin=-1)
    meta = json.loads((folder / "run.json").read_text())
    meta["writer"] |= {"pid": child.pid, "start": 1}
    (folder / "run.json").write_text(json.dumps(meta))
    assert open_run(folder).meta["status"] == "interrupted"


@pytest.mark.parametrize("elsewhere", [{"boot": "another"}, {"pid_space": "pid:[1]"}])
def test_where_the_pid_says_nothing_the_lock_decides(tmp_path, rows, elsewhere):
    writer = RunWriter(tmp_path / "run")
    writer.rows("memory", rows["memory"])
    writer.flush()
    meta = json.loads((tmp_path / "run/run.json").read_text())
    meta["writer"] |= elsewhere
    (tmp_path / "run/run.json").write_text(json.dumps(meta))
    assert open_run(tmp_path / "run").meta["status"] == "running"
    assert (tmp_path / "run/memory.arrows").exists()
    owner.release(writer.folder, writer._lock)
    assert open_run(tmp_path / "run").meta["status"] == "interrupted"
    writer._lock = None
    writer.rows("memory", rows["memory"])
    with pytest.raises(StoreError, match=r"memory.arrows was taken away while the run went on"):
        writer.close()
    trace = open_run(tmp_path / "run")  # the writer did not spoil what was recovered
    assert trace.meta["status"] == "interrupted"
    assert len(trace.memory) == 1


OPEN = """
import sys, time
from pathlib import Path
from workbench.store import open_run
print("ready", flush=True)
sys.stdin.readline()
trace = open_run(sys.argv[1])
print(trace.meta["status"], *(trace.tables[n].num_rows for n in sorted(trace.tables)), trace.tokens["step"].tolist())
"""


def test_two_processes_may_open_a_crashed_run_at_once(tmp_path, python, write, rows):
    folder = write(tmp_path / "run", crash=True)
    children = [python(OPEN, folder, stdin=-1) for _ in range(3)]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    counts = " ".join(str(len(rows[name])) for name in sorted(rows))
    for child in children:
        out, err = child.communicate(timeout=60)
        assert out == f"interrupted {counts} [1, 2]\n", err


def test_many_threads_may_open_a_crashed_run_at_once(tmp_path, write, rows):
    for i in range(10):
        folder = write(tmp_path / f"run{i}", crash=True)
        with ThreadPoolExecutor(8) as pool:
            traces = list(pool.map(open_run, [folder] * 8))
        for trace in traces:
            assert trace.meta["status"] == "interrupted"
            assert {n: t.num_rows for n, t in trace.tables.items()} == {n: len(r) for n, r in rows.items()}
        assert not list(folder.glob("*.arrows"))
        assert not list(folder.glob(".*"))


def test_a_crashed_run_in_a_read_only_folder_is_read_in_memory(tmp_path, write, python, mounted):
    folder = write(tmp_path / "run", crash=True)
    before = contents(folder)
    how = mounted(f"mount --bind {folder} {folder}; mount -o remount,bind,ro {folder}")
    child = python(OPEN, folder, before=how, stdin=-1)
    out, err = child.communicate("\n", timeout=60)
    assert "interrupted" in out, err
    assert contents(folder) == before


def test_a_crashed_run_on_a_full_disk_is_read_in_memory(tmp_path, write, monkeypatch):
    folder = write(tmp_path / "run", crash=True)
    streams = {path.name for path in folder.glob("*.arrows")}

    def full(*_args, **_more):
        raise OSError(28, os.strerror(28))

    with monkeypatch.context() as patch:
        patch.setattr(pq, "ParquetWriter", full)
        trace = open_run(folder)
    assert trace.meta["status"] == "interrupted"
    assert len(trace.tokens) == 2
    assert {path.name for path in folder.glob("*.arrows")} == streams
    assert open_run(folder).meta["compacted"]


def test_no_run_there(tmp_path):
    with pytest.raises(RunNotFoundError, match=r"expected a folder that is there; see `workbench runs list`"):
        open_run(tmp_path / "nothing")
    with pytest.raises(RunNotFoundError, match=r"expected a folder with run.json in it"):
        open_run(tmp_path)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"schema": "1", "status": "x"}', '{"schema": true, "status": "x"}', "\udcff", "[" * 9**6],
)
def test_damaged_metadata(tmp_path, text):
    (tmp_path / "run.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(StoreError, match=r"run.json: damaged, expected .*; delete the run or restore the file"):
        open_run(tmp_path)


def test_a_newer_schema_is_refused(tmp_path, write):
    folder = write(tmp_path / "run")
    meta = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(meta | {"schema": SCHEMA_VERSION + 1}))
    with pytest.raises(StoreError, match=rf"schema {SCHEMA_VERSION + 1}, .* reads up to {SCHEMA_VERSION}; update"):
        open_run(folder)


def test_a_damaged_or_lost_table_is_named(tmp_path, write):
    folder = write(tmp_path / "run")
    (folder / "steps.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(StoreError, match=r"steps.parquet: damaged"):
        open_run(folder)
    (folder / "steps.parquet").unlink()
    with pytest.raises(StoreError, match=r"steps.parquet: missing"):
        open_run(folder)


def test_an_older_run_without_a_column_or_a_table_has_nulls(tmp_path, write):
    folder = write(tmp_path / "run")
    old = pq.ParquetFile(folder / "steps.parquet").read().drop_columns(["kv_use", "preempted"])
    pq.write_table(old.set_column(0, "step", old["step"].cast(pa.int32())), folder / "steps.parquet")
    meta = json.loads((folder / "run.json").read_text())
    del meta["rows"]["memory"]
    (folder / "run.json").write_text(json.dumps(meta))
    (folder / "memory.parquet").unlink()
    trace = open_run(folder)
    assert trace.tables["steps"].schema.equals(TABLES["steps"])
    assert trace.steps["step"].tolist() == [1, 2]
    assert trace.tables["steps"]["kv_use"].null_count == 2
    assert not len(trace.memory)


def test_a_run_from_before_the_policy_lab_opens(tmp_path, write):
    folder = write(tmp_path / "run")
    new = {"steps": ["predicted_ms"]}
    new["knobs"] = ["target_gap_ms", "aging_s", "watermark", "reserve_full", "prefix_cache"]
    for name, columns in new.items():
        path = folder / f"{name}.parquet"
        pq.write_table(pq.ParquetFile(path).read().drop_columns(columns), path)
    meta = json.loads((folder / "run.json").read_text())
    del meta["rows"]["client"]
    (folder / "run.json").write_text(json.dumps(meta))
    (folder / "client.parquet").unlink()
    trace = open_run(folder)
    assert trace.tables["client"].schema.equals(TABLES["client"])
    assert not len(trace.client)
    for name, columns in new.items():
        assert trace.tables[name].schema.equals(TABLES[name])
        assert all(trace.tables[name][column].null_count == trace.tables[name].num_rows for column in columns)
    assert trace.tables["knobs"]["budget"].to_pylist() == [256]


def test_a_run_that_was_moved_has_the_id_of_its_folder(tmp_path, write):
    write(tmp_path / "one")
    shutil.move(tmp_path / "one", tmp_path / "two=2 'x'")
    assert open_run(tmp_path / "two=2 'x'").meta["id"] == "two=2 'x'"


def test_conform_refuses_what_is_no_number():
    with pytest.raises(pa.ArrowInvalid):
        conform(pa.table({"t_s": ["late"]}), TABLES["memory"])


BATCHES = [[{"t_s": float(i), "source": f"s{i}", "bytes": i} for i in range(b * 40, b * 40 + 40)] for b in range(6)]


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    """A stream of six batches of 40 rows, and where each batch ends."""
    path = tmp_path_factory.mktemp("stream") / "memory.arrows"
    file, ends = StreamFile(path, TABLES["memory"]), []
    for batch in BATCHES:
        file.append(table_of("memory", batch))
        ends.append(path.stat().st_size)
    file.close()
    return path, path.read_bytes(), ends


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_stream_cut_anywhere_gives_its_whole_batches(stream, data):
    path, good, ends = stream
    cut = data.draw(st.integers(0, len(good)))
    path.write_bytes(good[:cut])
    table, whole = read_stream(path, TABLES["memory"])
    batches = sum(end <= cut for end in ends)
    assert table.equals(table_of("memory", list(chain(*BATCHES[:batches]))))
    assert table.schema.equals(TABLES["memory"])
    if cut in ends:
        assert whole


@settings(deadline=None, max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_stream_with_a_damaged_tail_keeps_the_batches_before_it(stream, data):
    path, good, ends = stream
    start = data.draw(st.integers(0, len(good) - 1))
    junk = data.draw(st.binary(min_size=1, max_size=200) | st.just(bytes(64)) | st.just(b"\xff" * 64))
    keep_rest = data.draw(st.booleans())
    path.write_bytes(good[:start] + junk + (good[start + len(junk) :] if keep_rest else b""))
    table, _ = read_stream(path, TABLES["memory"])
    safe = table_of("memory", list(chain(*BATCHES[: sum(end <= start for end in ends)])))
    assert table.slice(0, safe.num_rows).equals(safe)
    table.validate(full=True)


def test_a_crashed_run_with_a_damaged_tail_opens_and_says_so(tmp_path, write, rows):
    folder = write(tmp_path / "run", crash=True)
    with (folder / "memory.arrows").open("ab") as file:
        file.write(b"\xff\xff\xff\xff\x10\x00")
    (folder / "knobs.arrows").write_bytes(b"")
    trace = open_run(folder)
    assert trace.meta["torn"] == ["memory"]
    assert len(trace.memory) == len(rows["memory"])
    assert not len(trace.knobs)


def test_reading_needs_neither_vllm_nor_torch_nor_ipywidgets(python):
    script = """
import sys
import workbench.metrics, workbench.store
print(sorted({"vllm", "torch", "ipywidgets", "pynvml"} & set(sys.modules)))
"""
    out, err = python(script).communicate(timeout=60)
    assert out == "[]\n", err
