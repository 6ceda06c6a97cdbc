from __future__ import annotations

import errno
import json
import os
import signal
import stat
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench.config import SLO
from workbench.errors import StoreError
from workbench.store import RunWriter, list_runs, open_run
from workbench.store.compact import coalesce
from workbench.store.streams import StreamFile, read_stream
from workbench.trace import SCHEMA_VERSION, TABLES, table_of


def test_what_is_written_is_read(tmp_path, write, rows):
    folder = write(tmp_path / "run", meta={"label": "x", "slo": SLO(), "settings": [1, float("nan")]}, engine_pid=7)
    trace = open_run(folder)
    for name, schema in TABLES.items():
        assert trace.tables[name].schema.equals(schema)
        if name != "tokens":
            assert trace.tables[name].equals(table_of(name, rows[name])), name
    assert trace.tokens["step"].tolist() == [1, 2]
    assert trace.tokens["engine_s"].tolist() == [1.0, 2.0]
    meta = trace.meta
    assert (meta["id"], meta["label"], meta["status"], meta["engine_pid"]) == ("run", "x", "complete", 7)
    assert meta["schema"] == SCHEMA_VERSION
    assert meta["slo"]["gap_ms"] == 200
    assert meta["settings"] == [1, None]
    assert meta["rows"] == {name: len(those) for name, those in rows.items()}
    assert meta["dropped"] == 0


def test_only_parquet_and_metadata_are_left_and_only_the_owner_can_read_them(tmp_path, write):
    folder = write(tmp_path / "run")
    assert {path.name for path in folder.iterdir()} == {"run.json", *(f"{name}.parquet" for name in TABLES)}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


def test_a_run_of_nothing(tmp_path):
    RunWriter(tmp_path / "run").close()
    trace = open_run(tmp_path / "run")
    assert all(not table.num_rows and table.schema.equals(TABLES[name]) for name, table in trace.tables.items())


def test_the_metadata_is_there_from_the_start(tmp_path):
    with RunWriter(tmp_path / "run", {"label": "x", "status": "mine", "schema": 99}):
        meta = json.loads((tmp_path / "run/run.json").read_text())
    assert meta["status"] == "running"
    assert meta["schema"] == SCHEMA_VERSION
    assert meta["writer"]["pid"] == os.getpid()
    assert meta["writer"]["boot"] == Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert meta["writer"]["start"] == int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])


def test_parts_of_a_request_a_step_and_a_revision_become_one_row(tmp_path, write):
    tables = {
        "requests": [
            {"request": "b", "planned_s": 2.0, "class": "long"},
            {"request": "a", "planned_s": 1.0, "status": "unfinished"},
            {"request": "b", "sent_s": 2.1},
            {"request": "a", "status": "ok", "planned_s": None},
        ],
        "knobs": [
            {"revision": 2, "sent_s": 5.0, "budget": 64},
            {"revision": 1, "sent_s": 4.0, "budget": 128},
            {"revision": 2, "applied_s": 5.1, "step": 40},
        ],
        "steps": [
            {"step": 5, "end_s": 1.0, "preempted": ["x"]},
            {"step": 4, "end_s": 0.9, "preempted": []},
            {"step": 5, "activation_bytes": 77},
        ],
    }
    trace = open_run(write(tmp_path / "run", tables=tables))
    a, b = trace.tables["requests"].to_pylist()
    assert (a["request"], a["planned_s"], a["status"]) == ("a", 1.0, "ok")
    assert (b["request"], b["class"], b["planned_s"], b["sent_s"], b["status"]) == ("b", "long", 2.0, 2.1, None)
    one, two = trace.tables["knobs"].to_pylist()
    assert (one["revision"], one["budget"], one["step"]) == (1, 128, None)
    assert (two["revision"], two["budget"], two["applied_s"], two["step"]) == (2, 64, 5.1, 40)
    four, five = trace.tables["steps"].to_pylist()
    assert (four["step"], four["preempted"], four["activation_bytes"]) == (4, [], None)
    assert (five["step"], five["preempted"], five["activation_bytes"]) == (5, ["x"], 77)


KNOB = st.fixed_dictionaries(
    {"revision": st.none() | st.integers(0, 4)},
    optional={
        "budget": st.none() | st.integers(1, 9),
        "policy": st.none() | st.sampled_from(["chunked", "x"]),
        "sent_s": st.none() | st.floats(0, 1),
    },
)


@settings(deadline=None, max_examples=200)
@given(st.lists(KNOB, max_size=12))
def test_merging_takes_the_last_value_that_is_not_null(rows):
    expected, lone = {}, []
    for row in rows:
        full = dict.fromkeys(TABLES["knobs"].names) | row
        if row["revision"] is None:
            lone.append(full)
            continue
        merged = expected.setdefault(row["revision"], dict.fromkeys(TABLES["knobs"].names))
        merged.update({key: value for key, value in row.items() if value is not None})
    found = coalesce(table_of("knobs", rows), "revision").to_pylist()
    assert sorted(map(repr, found)) == sorted(map(repr, [*expected.values(), *lone]))


def test_rows_are_sorted_and_equals_keep_their_order(tmp_path, write):
    tables = {
        "tokens": [{"request": r, "index": 0, "n": 1, "client_s": t} for r, t in (("c", 2), ("a", 1), ("b", 1))],
        "batch": [{"step": s, "request": r} for s, r in ((2, "z"), (None, "y"), (1, "x"), (2, "w"))],
    }
    trace = open_run(write(tmp_path / "run", tables=tables))
    assert trace.tokens["request"].tolist() == ["a", "b", "c"]
    assert trace.batch["request"].tolist() == ["x", "z", "w", "y"]


def test_many_threads_lose_nothing(tmp_path):
    with RunWriter(tmp_path / "run", flush_s=0.001) as writer:

        def work(name):
            for i in range(300):
                writer.rows("tokens", [{"request": name, "index": i, "n": 1, "client_s": float(i)}])

        threads = [threading.Thread(target=work, args=(f"t{i}",)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    tokens = open_run(tmp_path / "run").tokens
    assert tokens.groupby("request")["index"].apply(lambda index: sorted(index) == list(range(300))).all()
    assert len(tokens) == 1800


def test_a_row_that_does_not_fit_is_dropped_alone_and_told_at_the_end(tmp_path):
    writer = RunWriter(tmp_path / "run")
    writer.rows(
        "memory",
        [{"t_s": 1.0}, {"t_s": "late"}, {"colour": 1}, "row", {"t_s": 2.0, "bytes": 1 << 70}, {"t_s": 3.0}],
    )
    with pytest.raises(StoreError, match=r"a row of memory does not fit") as caught:
        writer.close()
    assert "\n" not in str(caught.value)
    assert writer.dropped == 4
    trace = open_run(tmp_path / "run")
    assert trace.memory["t_s"].tolist() == [1.0, 3.0]
    assert trace.meta["status"] == "failed"
    assert trace.meta["reason"].startswith("4 rows were lost")


def test_an_unknown_table_is_the_callers_mistake(tmp_path):
    with RunWriter(tmp_path / "run") as writer, pytest.raises(KeyError, match="colours"):
        writer.rows("colours", [])


def test_rows_after_the_end_are_counted_and_a_second_close_does_nothing(tmp_path):
    writer = RunWriter(tmp_path / "run")
    writer.close("cancelled", "Ctrl-C")
    writer.rows("memory", [{"t_s": 1.0}])
    writer.close("complete")
    assert writer.dropped == 1
    assert (open_run(tmp_path / "run").meta["status"], open_run(tmp_path / "run").meta["reason"]) == (
        "cancelled",
        "Ctrl-C",
    )
    with pytest.raises(ValueError, match="expected one of complete, failed, cancelled"):
        RunWriter(tmp_path / "other").close("done")


@pytest.mark.parametrize(
    ("error", "status"), [(ValueError("bad\nthing"), "failed"), (KeyboardInterrupt(), "cancelled")]
)
def test_leaving_by_an_exception_closes_the_run(tmp_path, error, status):
    def body():
        with RunWriter(tmp_path / "run") as writer:
            writer.rows("memory", [{"t_s": 1.0}])
            raise error

    with pytest.raises(type(error)):
        body()
    meta = open_run(tmp_path / "run").meta
    assert meta["status"] == status
    assert "\n" not in meta["reason"]
    assert meta["rows"]["memory"] == 1


def test_a_folder_that_is_taken_is_refused_and_left_alone(tmp_path, write):
    folder = write(tmp_path / "run")
    before = (folder / "run.json").read_bytes()
    with pytest.raises(StoreError, match="holds a run already"):
        RunWriter(folder)
    assert (folder / "run.json").read_bytes() == before
    with RunWriter(tmp_path / "going"), pytest.raises(StoreError, match="holds a run already"):
        RunWriter(tmp_path / "going")
    public = tmp_path / "public"
    public.mkdir()
    public.chmod(0o755)
    (public / "holiday.jpg").touch()
    with pytest.raises(StoreError, match="open to others"):
        RunWriter(public)
    assert stat.S_IMODE(public.stat().st_mode) == 0o755


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"cannot write the run folder .*file/run: .* MiB free\); .*another folder"):
        RunWriter(tmp_path / "file/run")


WRITE_FOR_EVER = """
import sys, time
from workbench.store import RunWriter
writer = RunWriter(sys.argv[1])
i = 0
while True:
    t = time.monotonic()
    writer.rows("tokens", [{"request": "a", "index": i + k, "n": 1, "client_s": t} for k in range(20)])
    writer.rows("batch", [{"step": i, "request": "a", "tokens": 20, "emitted": 20}])
    i += 20
    print(i, t, flush=True)
    time.sleep(0.002)
"""


@pytest.mark.parametrize("seconds", [0.1, 0.9, 1.7])
def test_kill_9_loses_at_most_the_last_second(tmp_path, python, seconds):
    child = python(WRITE_FOR_EVER, tmp_path / "run")
    child.stdout.readline()
    time.sleep(seconds)
    os.kill(child.pid, signal.SIGKILL)
    killed = time.monotonic()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # gone, but still there as a zombie
    lines = child.stdout.read().splitlines()[:-1]  # the last may be cut anywhere
    told = [line.split() for line in lines if line.count(" ") == 1]
    safe = max((int(i) for i, t in told if float(t) < killed - 1), default=0)
    assert list_runs(tmp_path)["status"].tolist() == ["interrupted"]
    trace = open_run(tmp_path / "run")
    assert trace.meta["status"] == "interrupted"
    assert trace.tokens["index"].tolist() == list(range(len(trace.tokens)))
    assert len(trace.tokens) >= safe
    assert trace.tables["batch"].num_rows * 20 >= safe
    if seconds > 1:
        assert safe > 0
    assert not list((tmp_path / "run").glob("*.arrows"))
    assert open_run(tmp_path / "run").tables["tokens"].equals(trace.tables["tokens"])


class Crash(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("point", range(1, 30))
def test_a_crash_at_any_point_of_the_end_loses_nothing(tmp_path, write, rows, monkeypatch, point):
    calls = 0

    def crashing(real):
        def call(*args, **kwargs):
            nonlocal calls
            calls += 1
            if calls == point:
                raise Crash
            return real(*args, **kwargs)

        return call

    writer = RunWriter(tmp_path / "run")
    for name, those in rows.items():
        writer.rows(name, those)
    with monkeypatch.context() as patch:
        for name in ("replace", "unlink"):
            patch.setattr(Path, name, crashing(getattr(Path, name)))
        patch.setattr(os, "fsync", crashing(os.fsync))
        try:
            writer.close()
        except Crash:
            crashed = True
        else:
            crashed = False
    assert crashed or point > 20  # the range covers the whole end
    for _ in range(2):
        trace = open_run(tmp_path / "run")
        assert trace.meta["status"] in ("complete", "interrupted")
        assert {name: table.num_rows for name, table in trace.tables.items()} == {n: len(r) for n, r in rows.items()}
    if not crashed:
        assert trace.meta["status"] == "complete"


FILL = """
import sys, time
from workbench.errors import StoreError
from workbench.store import RunWriter, open_run
if len(sys.argv) > 2:
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
import random
writer = RunWriter(sys.argv[1], {"label": "full"})
i = 0
while not writer.dropped and i < 200:
    rows = [{"request": "%030x" % random.getrandbits(120), "index": i, "client_s": random.random()} for _ in range(500)]
    writer.rows("tokens", rows)
    writer.flush()
    i += 1
assert isinstance(writer.error, StoreError)
try:
    writer.close()
except StoreError as error:
    print(error)
trace = open_run(sys.argv[1])
print(trace.tables["tokens"].num_rows, i * 500 - writer.dropped, trace.meta["status"])
print(trace.meta["reason"])
"""


def check_full(child, why):
    out, err = child.communicate(timeout=120)
    assert child.returncode == 0, err
    error, counts, reason = out.splitlines()
    read, kept, status = counts.split()
    assert why in error
    assert "MiB free); free some space there" in error
    assert int(read) == int(kept) > 0
    assert status == "failed"
    assert "rows were lost" in reason


def test_a_full_disk_keeps_what_was_written(tmp_path, python, mounted):
    before = mounted(f"mount -t tmpfs -o size=2m none {tmp_path}")
    check_full(python(FILL, tmp_path / "run", before=before), "No space left on device")


def test_a_file_size_limit_keeps_what_was_written(tmp_path, python):
    check_full(python(FILL, tmp_path / "run", 1_000_000), "File too large")
    trace = open_run(tmp_path / "run")  # and without the limit it is converted
    assert trace.meta["compacted"]
    assert trace.meta["status"] == "failed"


def test_a_disk_that_has_room_again_gets_the_later_rows(tmp_path, monkeypatch):
    writer = RunWriter(tmp_path / "run", flush_s=60)
    real = os.write
    broken = False

    def write(fd, data):
        if not broken:
            return real(fd, data)
        if len(data) > 100:
            return real(fd, data[:100])  # half a batch gets through
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", write)
    for i, broken in enumerate([True, False, True, True, False]):  # noqa: B007  write() reads it
        writer.rows("memory", [{"t_s": float(i), "source": str(k)} for k in range(100)])
        writer.flush()
    assert writer.dropped == 300
    with pytest.raises(StoreError, match="No space left"):
        writer.close()
    assert open_run(tmp_path / "run").memory["t_s"].unique().tolist() == [1.0, 4.0]


def test_a_cancelled_run_of_which_rows_were_lost_says_so(tmp_path, monkeypatch):
    writer = RunWriter(tmp_path / "run", flush_s=60)
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
        writer.rows("memory", [{"t_s": 1.0}, {"t_s": 2.0}])
        writer.flush()
    with pytest.raises(StoreError, match="cannot write memory rows"):
        writer.close("cancelled")
    meta = open_run(tmp_path / "run").meta
    assert meta["status"] == "failed"
    assert meta["reason"].startswith("2 rows were lost: cannot write memory rows to")


def test_a_folder_that_turns_read_only_does_not_fail_the_run(tmp_path, python, mounted):
    script = """
import subprocess, sys
from workbench.errors import StoreError
from workbench.store import RunWriter, list_runs, open_run
folder = sys.argv[1]
try:
    RunWriter("/proc/nothing")
except StoreError as error:
    print(error)
writer = RunWriter(folder)
writer.rows("memory", [{"t_s": 1.0}])
writer.flush()
subprocess.run(["mount", "-o", "remount,ro", sys.argv[2]], check=False)
for stream in writer._streams.values():
    stream.close()
subprocess.run(["mount", "-o", "remount,ro", sys.argv[2]], check=True)
writer.rows("memory", [{"t_s": 2.0}])
writer.rows("steps", [{"step": 1}])
try:
    writer.close()
except StoreError as error:
    print(error)
trace = open_run(folder)
print(trace.memory["t_s"].tolist(), trace.meta["status"], writer.dropped)
try:
    RunWriter(folder + "2")
except StoreError as error:
    print(error)
"""
    before = mounted(f"mount -t tmpfs none {tmp_path}")
    child = python(script, tmp_path / "run", tmp_path, before=before)
    out, err = child.communicate(timeout=120)
    assert child.returncode == 0, err
    made, closed, read, again = out.splitlines()
    assert "/proc/nothing" in made
    assert "MiB free); " in closed
    assert read == "[1.0] interrupted 2"
    assert "Read-only file system" in again
    assert "make it writable, or choose another folder" in again


def test_the_stream_survives_a_header_that_did_not_fit(tmp_path, monkeypatch):
    stream = StreamFile(tmp_path / "memory.arrows", TABLES["memory"])
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
        with pytest.raises(OSError, match="full"):
            stream.append(table_of("memory", [{"t_s": 1.0}]))
    stream.append(table_of("memory", [{"t_s": 2.0}]))
    stream.close()
    table, whole = read_stream(tmp_path / "memory.arrows", TABLES["memory"])
    assert whole
    assert table["t_s"].to_pylist() == [2.0]


def test_rows_beyond_the_bound_are_dropped_not_piled_up(tmp_path, monkeypatch):
    monkeypatch.setattr("workbench.store.writer.MAX_PENDING", 10)
    writer = RunWriter(tmp_path / "run", flush_s=60)
    for i in range(4):
        writer.rows("memory", [{"t_s": float(i)}] * 4)
    assert writer.dropped == 8
    with pytest.raises(StoreError, match="8 rows came faster than the disk took them"):
        writer.close()
    assert len(open_run(tmp_path / "run").memory) == 8
