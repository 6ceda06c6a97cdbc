"""A run of another process, read from its folder while it grows; nothing in there is touched."""

import json
import shutil
from pathlib import Path

import pytest

from workbench.store import RunWriter, open_run
from workbench.ui.room import watched
from workbench.ui.room.watched import Watched, WatchedRun

RECORDED = Path(__file__).parents[3] / "data" / "runs" / "chat_and_long-budget-256"


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Looks at the disk whenever it is asked."""
    monkeypatch.setattr(watched, "LOOK_S", 0.0)


@pytest.fixture
def root(tmp_path):
    return tmp_path


def begin(root, name, slo_ms=150.0):
    """A run that goes on, with a stream that is planned."""
    folder = root / name
    folder.mkdir(mode=0o700)
    writer = RunWriter(folder, {"label": "live CPU", "scenario": "mine", "slo": {"gap_ms": slo_ms, "ttft_ms": 1000}})
    writer.rows(
        "requests", [{"request": "chat-0", "class": "chat", "priority": 1, "prompt_tokens": 8, "planned_s": 0.0}]
    )
    writer.rows("knobs", [{"revision": 3, "sent_s": 0.0, "budget": 64, "chunk": 0, "policy": "chunked"}])
    writer.flush()
    return writer, folder


def rows_of(run, table):
    batches, _ = run.tail.since()
    return [row for name, rows in batches for row in rows if name == table]


def test_a_finished_run_is_there_at_once():
    run = WatchedRun(RECORDED)
    trace = open_run(RECORDED)
    assert run.done
    assert len(rows_of(run, "steps")) == len(trace.steps)
    assert len(rows_of(run, "tokens")) == len(trace.tokens)
    assert {one.class_name for one in run.workload.requests} == {"chat", "long"}
    assert run.revision["budget"] == 256
    assert run.elapsed_s == pytest.approx(
        max(trace.steps["end_s"].max(), trace.tokens["client_s"].max(), trace.memory["t_s"].max())
    )
    assert run.origin.startswith("recorded, live CPU")


def test_rows_come_as_they_are_written_and_each_once(root):
    writer, _ = begin(root, "20260101-000000-000-a")
    bench = Watched(root)
    run = bench.current_run
    assert (run.scenario, run.slo.gap_ms, run.done) == ("mine", 150.0, False)
    assert [one.request for one in run.workload.requests] == ["chat-0"]
    assert run.revision["budget"] == 64
    for n in range(3):
        writer.rows("tokens", [{"request": "chat-0", "index": n, "n": 1, "client_s": 1.0 + n}])
        writer.flush()
        assert bench.current_run is run
        assert [row["index"] for row in rows_of(run, "tokens")] == list(range(n + 1))
    assert 3.0 <= run.elapsed_s <= 3.0 + 2.0
    writer.close("complete")
    ended = bench.current_run
    assert ended is not run
    assert ended.done
    assert len(rows_of(ended, "tokens")) == 3
    assert bench.current_run is ended


def test_the_newest_run_is_shown_and_a_damaged_one_is_not(root):
    bench = Watched(root)
    assert bench.current_run is None
    first, _ = begin(root, "20260101-000000-000-a")
    assert bench.current_run.folder.name.endswith("-a")
    second, _ = begin(root, "20260101-000001-000-b")
    assert bench.current_run.folder.name.endswith("-b")
    damaged = root / "20260101-000002-000-c"
    damaged.mkdir()
    (damaged / "run.json").write_text("{")
    assert bench.current_run.folder.name.endswith("-b")
    first.close("complete")
    second.close("complete")


def test_what_a_crash_left_is_read_and_not_touched(root):
    writer, folder = begin(root, "20260101-000000-000-a")
    writer.rows("tokens", [{"request": "chat-0", "index": 0, "n": 1, "client_s": 1.0}])
    writer.flush()
    left = root / "20260101-000001-000-left"
    shutil.copytree(folder, left)
    writer.close("complete")
    meta = json.loads((left / "run.json").read_text())
    meta["writer"] = {**meta["writer"], "pid": 2**22 + 1}  # nobody
    (left / "run.json").write_text(json.dumps(meta))
    before = {path.name: path.read_bytes() for path in left.iterdir()}
    run = Watched(root).current_run
    assert run.folder == left
    assert run.done
    assert len(rows_of(run, "tokens")) == 1
    assert {path.name: path.read_bytes() for path in left.iterdir()} == before
