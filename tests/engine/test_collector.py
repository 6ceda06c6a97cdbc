"""Hand-made records over real sockets: what the collector makes rows of, and what it survives."""

from __future__ import annotations

import os
import threading
import time

import msgspec
import pytest
import zmq

from workbench.config import Knobs
from workbench.engine.collector import Collector
from workbench.engine.probe import wire
from workbench.engine.probe.knob_page import KnobPage
from workbench.trace import TABLES, table_of

ZERO = 1000.0  # a run's zero far in the past of this machine's clock, so that every time below is a small number
KNOBS = Knobs(budget=256, chunk=0, max_running=32)


class Rows:
    def __init__(self):
        self.tables = {name: [] for name in TABLES}

    def rows(self, table, rows):
        table_of(table, rows)  # refuses a column that the trace does not have
        self.tables[table].extend(rows)


def until(what, timeout_s=10.0):
    deadline = time.monotonic() + timeout_s
    while not (value := what()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return value


class Wire:
    """The probe's end: a socket for records, a page for knobs."""

    def __init__(self, folder):
        self.out = zmq.Context.instance().socket(zmq.PUSH)
        self.out.connect(wire.endpoint(folder))
        self.knobs = KnobPage(folder)

    def send(self, *records):
        for record in records:
            self.out.send(record if isinstance(record, bytes) else msgspec.msgpack.encode(record))


@pytest.fixture
def probe(sockets, collector):
    one = Wire(sockets)
    yield one
    one.out.close(0)


@pytest.fixture
def rows():
    return Rows()


def step(number, end_s=None, parts=(), **more):
    end_s = time.monotonic() if end_s is None else end_s
    fields = {"revision": 0, "running": 2, "waiting": 1, "kv_use": 0.25, "preempted": []} | more
    return wire.Step(
        step=number,
        scheduled_s=end_s - 0.03,
        schedule_us=150.0,
        end_s=end_s,
        probe_us=20.0,
        parts=list(parts),
        **fields,
    )


def test_a_step_becomes_a_row_and_its_parts_rows_of_the_batch(collector, probe, rows):
    parts = [
        wire.Part("cmpl-long-0-0-1a2b3c4d", 96, 2000, prefill=True, emitted=0),
        wire.Part("cmpl-chat-1-0-Zz09aaaa", 1, 40, prefill=False, emitted=1),
        wire.Part("cmpl-chat-2-0-00000000", 1, 41, prefill=False, emitted=1),
    ]
    work = wire.Work(
        start_s=ZERO + 1.0, end_s=ZERO + 1.02, before_bytes=1000, peak_bytes=1800, after_bytes=1100, probe_us=5.0
    )
    with collector.into(rows, ZERO, 3, KNOBS):
        probe.send(
            step(7, ZERO + 1.03, parts, revision=3, preempted=["cmpl-doc-4-0-abcdefgh"], work=work, predicted_ms=28.5)
        )
        assert until(lambda: rows.tables["batch"])
    (row,) = rows.tables["steps"]
    times = {name: row.pop(name) for name in ("scheduled_s", "start_s", "end_s")}
    assert times == pytest.approx({"scheduled_s": 1.0, "start_s": 1.0, "end_s": 1.03})
    assert row == {
        "step": 7,
        "prefill_tokens": 96,
        "decode_tokens": 2,
        "prefills": 1,
        "decodes": 2,
        "running": 2,
        "waiting": 1,
        "kv_use": 0.25,
        "preempted": ["doc-4"],
        "revision": 3,
        "schedule_us": 150.0,
        "probe_us": 25.0,
        "memory_before_bytes": 1000,
        "memory_peak_bytes": 1800,
        "memory_after_bytes": 1100,
        "activation_bytes": 700,  # above what was there before and stays after
        "predicted_ms": 28.5,
    }
    assert rows.tables["batch"] == [
        {"step": 7, "request": "long-0", "tokens": 96, "context": 2000, "prefill": True, "emitted": 0},
        {"step": 7, "request": "chat-1", "tokens": 1, "context": 40, "prefill": False, "emitted": 1},
        {"step": 7, "request": "chat-2", "tokens": 1, "context": 41, "prefill": False, "emitted": 1},
    ]


def test_a_step_that_no_worker_told_of_has_no_memory_and_no_start(collector, probe, rows):
    with collector.into(rows, ZERO, 0, KNOBS):
        probe.send(step(1))
        assert until(lambda: rows.tables["steps"])
    assert not {name for name in rows.tables["steps"][0] if "bytes" in name or name == "start_s"}


def test_activation_is_not_negative(collector, probe, rows):
    with collector.into(rows, ZERO, 0, KNOBS):
        probe.send(step(1, work=wire.Work(ZERO, ZERO, before_bytes=900, peak_bytes=800, after_bytes=700)))
        assert until(lambda: rows.tables["steps"])
    assert rows.tables["steps"][0]["activation_bytes"] == 0


def test_the_end_of_a_run_waits_for_the_records_on_their_way_and_then_takes_no_more(collector, probe, rows):
    with collector.into(rows, ZERO, 0, KNOBS):
        probe.send(*(step(number) for number in range(200)))
    assert [row["step"] for row in rows.tables["steps"]] == list(range(200))
    probe.send(step(200), wire.Fault("here", "all was read"))
    assert until(lambda: collector.faults)
    assert len(rows.tables["steps"]) == 200  # after the run: nobody's


def test_the_end_of_a_run_waits_for_the_steps_whose_tokens_have_arrived(collector, probe, rows):
    last = step(2, parts=[wire.Part("a", 1, 1, prefill=False, emitted=1)])
    late = threading.Timer(0.4, lambda: probe.send(last))  # much later than an engine at rest is taken for done
    with collector.into(rows, ZERO, 0, KNOBS, arrived=lambda: 3):
        probe.send(step(1, parts=[wire.Part("a", 2, 0, prefill=True, emitted=2)]))
        late.start()
    assert [row["step"] for row in rows.tables["steps"]] == [1, 2]


def test_steps_before_the_zero_of_a_run_are_not_part_of_it(collector, probe, rows):
    zero = time.monotonic()
    with collector.into(rows, zero, 0, KNOBS):
        probe.send(step(1, zero - 0.5, [wire.Part("a", 1, 1, prefill=False)]), step(2, zero + 0.5))
        assert until(lambda: rows.tables["steps"])
    assert [row["step"] for row in rows.tables["steps"]] == [2]
    assert rows.tables["batch"] == []


@pytest.mark.parametrize(
    ("internal", "name"),
    [
        ("cmpl-long-0-0-1a2b3c4d", "long-0"),
        ("cmpl-chat-12-0-ABCDEFGH", "chat-12"),
        ("cmpl-a-0-00000000", "a"),
        ("cmpl-doc-12345678-0-1a2b3c4d", "doc-12345678"),  # our own dashes and digits stay
        ("cmpl-x-1-2-3-4-0-1a2b3c4d", "x-1-2-3-4"),
        ("cmpl-cmpl-0-0-1a2b3c4d", "cmpl-0"),
        ("long-0-0-1a2b3c4d", "long-0"),
        ("chatcmpl-9f8e7d6c5b4a", "chatcmpl-9f8e7d6c5b4a"),  # somebody else's: as it is
        ("cmpl-long-0", "cmpl-long-0"),
        ("", ""),
    ],
)
def test_our_name_of_a_request(collector, internal, name):
    assert collector._name(internal) == name
    assert collector._name(internal) == name  # from memory


def test_knobs_go_out_and_their_reply_becomes_the_other_half_of_the_row(collector, probe, rows):
    own = {"target_gap_ms": 150.0, "aging_s": 5.0, "watermark": 0.1, "reserve_full": False, "prefix_cache": False}
    change = Knobs(budget=64, chunk=32, max_running=8, policy="decode_first", prefill_every=5, **own)
    with collector.into(rows, ZERO, 4, KNOBS):
        collector.send_knobs(5, change)
        assert probe.knobs.latest() == wire.KnobChange(
            revision=5, budget=64, chunk=32, max_running=8, policy="decode_first", prefill_every=5, **own
        )
        probe.send(wire.KnobReply(revision=5, applied_s=ZERO + 2.5, step=41))
        assert until(lambda: len(rows.tables["knobs"]) == 3)
    at_start, sent, applied = rows.tables["knobs"]
    assert at_start == {"revision": 4, "sent_s": 0.0, "applied_s": 0.0} | KNOBS.model_dump()
    assert sent.pop("sent_s") == pytest.approx(time.monotonic() - ZERO, abs=30)
    assert sent == {"revision": 5} | change.model_dump()
    assert applied == {"revision": 5, "step": 41, "applied_s": 2.5}


def test_refused_knobs_are_told_and_not_shown_as_applied(collector, probe, rows):
    with collector.into(rows, ZERO, 0, KNOBS):
        probe.send(wire.KnobReply(revision=1, applied_s=ZERO + 1, step=2, error="budget 9 outside 1..8"))
        assert until(lambda: collector.faults)
    assert collector.faults == ["knobs: revision 1 was refused: budget 9 outside 1..8"]
    assert [row["revision"] for row in rows.tables["knobs"]] == [0]


def test_knobs_may_be_set_with_no_scheduler_and_no_run(collector, probe):
    collector.send_knobs(1, KNOBS)
    collector.send_knobs(2, KNOBS.replace(budget=128))
    change = probe.knobs.latest()
    assert (change.revision, change.budget) == (2, 128)  # a late scheduler gets the newest
    assert probe.knobs.latest() is None


def test_what_steps_without_prefill_take_is_watched_with_no_run(collector, probe):
    decode = wire.Part("a", 1, 9, prefill=False)
    assert collector.decode_floor_ms is None
    probe.send(*(step(number, 10.0 + number, [decode]) for number in range(20)))  # 30 ms each
    assert until(lambda: collector.decode_floor_ms) == pytest.approx(30)


def test_hellos_are_kept_without_a_run(collector, probe):
    hello = wire.SchedulerHello(
        pid=os.getpid(),
        vllm="0.32.0",
        max_num_batched_tokens=8192,
        max_num_seqs=32,
        max_model_len=4096,
        chunked_prefill=True,
        prefix_caching=False,
        async_scheduling=False,
        kv_blocks=100,
        block_size=128,
    )
    workers = [wire.WorkerHello(pid=rank, rank=rank, device="cuda", weights_bytes=7, kv_bytes=9) for rank in (0, 1)]
    probe.send(hello, *workers)
    assert until(lambda: len(collector.workers) == 2)
    assert collector.scheduler == hello
    assert collector.workers == {0: workers[0], 1: workers[1]}


@pytest.mark.parametrize("noise", [b"", b"\xc1", b"\x00" * 100, msgspec.msgpack.encode({"a": 1}), b"\x91\xa4step"])
def test_a_malformed_message_is_a_fault_and_what_follows_is_read(collector, probe, rows, noise):
    with collector.into(rows, ZERO, 0, KNOBS):
        probe.send(noise, step(1))
        assert until(lambda: rows.tables["steps"])
    assert len(collector.faults) == 1
    assert collector.faults[0].startswith("collector: ")


def test_a_flood_of_faults_is_bounded(collector, probe, rows):
    probe.send(wire.Fault("schedule", "KeyError: 'first'"), *[b"\xc1"] * 500)
    with collector.into(rows, ZERO, 0, KNOBS):
        probe.send(step(1))
        assert until(lambda: rows.tables["steps"])
    assert collector.faults[0] == "schedule: KeyError: 'first'"
    assert len(collector.faults) == 100


def test_drops_are_as_the_probe_counts_them(collector, probe, rows):
    assert collector.dropped == 0
    with collector.into(rows, ZERO, 0, KNOBS):
        probe.send(step(1, dropped=3), step(9, dropped=10))
        assert until(lambda: len(rows.tables["steps"]) == 2)
    assert collector.dropped == 10
    with collector.into(rows, ZERO, 0, KNOBS):
        probe.send(step(10, dropped=12))
        assert until(lambda: len(rows.tables["steps"]) == 3)
    assert collector.dropped == 2, "those of the run before are not this one's"


def test_nothing_of_it_is_left_after_close(sockets):
    one = Collector(sockets)
    one.close()
    assert not one._thread.is_alive()
    Collector(sockets).close()  # the addresses are free again
