"""The trace event file against the format's own rules, and against the trace."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pytest

from workbench.errors import StoreError
from workbench.exchange import perfetto, write_perfetto
from workbench.exchange.perfetto import COUNTERS, ENGINE, REQUESTS, events, us
from workbench.trace import Trace

PHASES = {"X": {"ts", "dur", "pid", "tid", "name"}, "C": {"ts", "pid", "name", "args"}, "i": {"ts", "s", "name"},
          "M": {"name", "args", "pid"}}  # fmt: skip


@pytest.fixture
def written(trace, tmp_path):
    return json.loads(write_perfetto(trace, tmp_path / "t.json").read_text(), parse_constant=pytest.fail)


def test_the_file_is_what_the_format_asks_for(written):
    assert set(written) == {"displayTimeUnit", "otherData", "traceEvents"}
    assert written["otherData"]["origin"] == "live CPU"
    for event in written["traceEvents"]:
        assert PHASES[event["ph"]] <= set(event)
        assert isinstance(event["pid"], int)
        if event["ph"] == "X":
            assert event["dur"] >= 0
        if event["ph"] == "C":
            assert all(isinstance(value, int | float) for value in event["args"].values())
            assert event["args"]
    named = {(e["pid"], e["tid"]) for e in written["traceEvents"] if e["name"] in ("thread_name", "process_name")}
    assert {(e["pid"], e["tid"]) for e in written["traceEvents"] if e["ph"] in "Xi"} <= named


def test_times_are_microseconds_to_the_nanosecond(trace):
    assert us(1.234567891) == 1234567.891
    of = {e["name"]: e for e in events(trace) if e["ph"] == "X" and e["cat"] == "chat"}
    assert (of["chat-0"]["ts"], of["chat-0"]["dur"]) == (0.0, 200000.001)


def test_requests_that_overlap_stand_on_rows_of_their_own_and_those_after_them_do_not(trace):
    lanes = {
        e["name"]: e["tid"] for e in events(trace) if e["ph"] == "X" and e["pid"] == REQUESTS and e["cat"] == "chat"
    }
    assert lanes == {"chat-0": 1, "chat-1": 2, "chat-2": 1}


def test_phases_lie_inside_their_request(trace):
    made = [e for e in events(trace) if e["ph"] == "X" and e["pid"] == REQUESTS]
    first = [e for e in made if e["tid"] == 1 and e["ts"] < 250_000]
    assert [(e["name"], e["ts"], e["dur"]) for e in first] == [
        ("chat-0", 0.0, 200000.001),
        ("waits to be sent", 0.0, 1000.0),
        ("to first token", 1000.0, 99000.0),
        ("decode", 100000.0, 100000.0),
    ]


def test_steps_counters_and_instants(trace):
    made = list(events(trace))
    steps = [(e["name"], e["ts"], e["dur"]) for e in made if e["ph"] == "X" and e["pid"] == ENGINE]
    assert steps == [("prefill", 11000.0, 89000.0), ("mixed", 100000.0, 50000.0)]  # the second by when it was scheduled
    counters = {(e["name"], e["ts"]): e["args"] for e in made if e["ph"] == "C"}
    assert counters["memory: host engine rss", 0.0] == {"MiB": 3.0}
    assert counters["activation of a step", 100000.0] == {"MiB": 1.0}
    assert counters["KV pool in use (server's /metrics)", 250000.0] == {"%": 50.0}
    assert counters["requests (server's /metrics)", 250000.0] == {"running": 2}  # waiting is not known
    assert not any(name.startswith("memory: nvml") for name, _ in counters)
    assert all(e["pid"] == COUNTERS for e in made if e["ph"] == "C")
    instants = [e["name"] for e in made if e["ph"] == "i"]
    assert instants[0].startswith("error: cut")
    assert instants[1:] == ["preempted chat-1", 'preempted a "b", c', "knobs, revision 0", "knobs, revision 1"]


def test_a_compressed_file_holds_the_same(trace, tmp_path):
    plain, packed = (write_perfetto(trace, tmp_path / name) for name in ("t.json", "t.json.gz"))
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()


def test_a_file_that_cannot_be_written_is_one_line(trace, tmp_path):
    with pytest.raises(StoreError, match="cannot write"):
        write_perfetto(trace, tmp_path / "no" / "folder.json")


def test_a_time_that_no_run_has_is_left_out(trace, tmp_path):
    tables = dict(trace.tables)
    far = pa.array([1e303, -1e303, float("nan")], pa.float64())
    tables["requests"] = tables["requests"].set_column(
        tables["requests"].schema.get_field_index("done_s"), "done_s", far
    )
    events = json.loads(write_perfetto(Trace(tables, trace.meta), tmp_path / "t.json").read_text())["traceEvents"]
    assert all(abs(event["ts"]) < 1e15 for event in events)
    assert {event["name"] for event in events} >= {"chat-0", "chat-1", "chat-2"}


def test_half_a_file_is_never_there(trace, tmp_path, monkeypatch):
    path = tmp_path / "t.json.gz"
    path.write_bytes(b"mine")

    def fail(*_):
        raise OSError(28, "No space left on device")
        yield

    monkeypatch.setattr(perfetto, "_steps", fail)
    with pytest.raises(StoreError, match="No space left"):
        write_perfetto(trace, path)
    assert path.read_bytes() == b"mine"
    assert list(tmp_path.iterdir()) == [path]
