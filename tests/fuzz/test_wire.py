"""Messages of other processes on this machine: of the wrong kind, cut, or mangled. Nobody raises, nobody waits."""

from __future__ import annotations

import os
import struct
import zlib

import msgspec
import pytest
import zmq
from damage import FUZZ, TEXTS, mangled, named
from hypothesis import given
from hypothesis import strategies as st

from workbench.config import Knobs
from workbench.driver.messages import Begin, Item, Order, Plan, Report, Target, frame
from workbench.engine.attached_probe import AttachedProbe
from workbench.engine.collector import Collector
from workbench.engine.probe import wire
from workbench.engine.probe.compat import TESTED
from workbench.engine.probe.knob_page import NAME, KnobPage
from workbench.trace import table_of

packed = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.sampled_from([text for text in TEXTS if text.isprintable()])
    | st.binary(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
STEP = wire.Step(
    step=1, scheduled_s=1.0, schedule_us=2.0, revision=0, running=1, waiting=0, kv_use=0.5, preempted=["x"],
    parts=[wire.Part("cmpl-a-0-12345678", 4, 0, True)], end_s=2.0, work=wire.Work(1.0, 2.0, 3, 4, 5),
)  # fmt: skip
RECORDS = [
    STEP,
    wire.SchedulerHello(1, "0.32.0", 512, 8, 4096, True, True, False, 100, 16),
    wire.WorkerHello(1, 0, "cpu", 1, 2),
    wire.KnobReply(1, 2.0, 3),
    wire.Fault("here", "so"),
]
CHANGE = wire.KnobChange(1, 256, 0, 8, "chunked")
BAD = [
    b"",
    b"\xc1",  # not in use in msgpack
    b"\x91" * 100_000,  # lists in lists
    b"\x92\xa4step" + b"\x91" * 100_000,
    b"\x92\xa5fault\xa2\xff\xfe",  # a text that is not UTF-8
    b"\x93\xa5fault\xa2\xff\xfe\xa1x",
    b"\xdd\xff\xff\xff\xff",  # four billion items to come
    b"\xc6\xff\xff\xff\xff",
]


@st.composite
def altered(draw, message):
    """A message with one of its items replaced, or cut; or something else altogether."""
    data = msgspec.msgpack.encode(message)
    how = draw(st.sampled_from(["item", "bytes", "other", "known"]))
    if how == "bytes":
        return draw(mangled(data))
    if how == "other":
        return msgspec.msgpack.encode(draw(packed))
    if how == "known":
        return draw(st.sampled_from(BAD))
    items = msgspec.msgpack.decode(data)
    items[draw(st.integers(0, len(items) - 1))] = draw(packed)
    return msgspec.msgpack.encode(items)


class Sink:
    """Keeps rows as the store would: what does not fit a table is told."""

    def __init__(self):
        self.tables = {}

    def rows(self, table, rows):
        self.tables.setdefault(table, []).extend(rows)


@pytest.fixture(scope="module")
def collector(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probe")
    collector = Collector(folder)
    push = zmq.Context.instance().socket(zmq.PUSH)
    push.connect(wire.endpoint(folder))
    yield collector, push
    push.close(0)
    collector.close()


def send(collector, push, *messages):
    """Send them, then a sound step; return once that one has been taken."""
    collector.last_step = -1
    for message in messages:
        push.send(message)
    push.send(msgspec.msgpack.encode(msgspec.structs.replace(STEP, step=7_777)))
    for _ in range(2_000):
        if collector.last_step == 7_777:
            return True
        collector._thread.join(0.005)
    return False


@FUZZ
@given(messages=st.lists(st.sampled_from(RECORDS).flatmap(altered), min_size=1, max_size=4))
def test_the_collector_outlives_every_record(collector, messages):
    collector, push = collector
    assert send(collector, push, *messages)
    assert collector._thread.is_alive()
    assert len(collector.faults) <= 100


@pytest.mark.parametrize("message", BAD, ids=range(len(BAD)))
def test_a_record_that_cannot_be_read_is_counted_and_the_next_one_taken(collector, message):
    collector, push = collector
    before = collector.fault_count
    assert send(collector, push, message)
    assert collector.fault_count == before + 1


def test_steps_of_a_damaged_record_that_still_fits_reach_the_tables_or_are_refused_by_them(collector):
    collector, push = collector
    sink = Sink()
    with collector.into(sink, 0.0, 0, Knobs(budget=64, max_running=8)):
        assert send(collector, push, msgspec.msgpack.encode(STEP))
    assert [row["step"] for row in sink.tables["steps"]] == [1, 7_777]
    assert table_of("steps", sink.tables["steps"]).num_rows == 2
    assert sink.tables["batch"][0]["request"] == "a"


def page_of(folder, message, *, checksum=None, length=None, sequence=2):
    """A page with that message on it."""
    folder.mkdir(parents=True, exist_ok=True)
    head = struct.pack(
        "<QII",
        sequence,
        len(message) if length is None else length,
        zlib.crc32(message) if checksum is None else checksum,
    )
    (folder / NAME).write_bytes((head + message)[:4096].ljust(4096, b"\0"))
    return KnobPage(folder)


@FUZZ
@given(message=altered(CHANGE))
def test_a_knob_message_is_a_change_or_nothing(tmp_path, message):
    if len(message) > 4_000:
        message = message[:4_000]
    found = page_of(tmp_path / "page", message).latest()
    assert found is None or isinstance(found, wire.KnobChange)


@pytest.mark.parametrize("message", [bad[:4_000] for bad in BAD], ids=range(len(BAD)))
def test_a_knob_message_that_cannot_be_read_is_nothing(tmp_path, message):
    assert page_of(tmp_path, message).latest() is None


@pytest.mark.parametrize("odd", [{"checksum": 0}, {"length": 5_000}, {"length": 0}, {"sequence": 3}], ids=str)
def test_a_knob_page_that_is_being_written_is_passed_over(tmp_path, odd):
    assert page_of(tmp_path, msgspec.msgpack.encode(CHANGE), **odd).latest() is None


def test_a_sound_knob_message_is_read(tmp_path):
    assert page_of(tmp_path, msgspec.msgpack.encode(CHANGE)).latest() == CHANGE


@pytest.mark.parametrize("size", [0, 100])
def test_a_knob_page_of_another_size_is_refused_in_words(tmp_path, size):
    (tmp_path / NAME).write_bytes(bytes(size))
    with pytest.raises(OSError):
        KnobPage(tmp_path)


@FUZZ
@given(message=altered(msgspec.structs.replace(RECORDS[1], pid=os.getpid(), vllm=TESTED[0])), page=altered(CHANGE))
def test_a_server_that_was_started_by_hand(tmp_path_factory, message, page):
    folder = tmp_path_factory.mktemp("p")
    folder.chmod(0o700)
    (folder / wire.HELLO).write_bytes(message)
    page_of(folder, page[:4_000])
    probe = named(lambda: AttachedProbe(folder))
    if isinstance(probe, AttachedProbe):
        assert probe.envelope.max_budget >= 1
        assert probe.knobs.budget >= 1
        probe.close()


@FUZZ
@given(
    order=st.sampled_from([Target("u", "", "m"), Plan(1, Item("r", "c", 0, 0.0, (1, 2), 3)), Begin(1, 0.0, {"c": 2})]),
    data=st.data(),
)
def test_orders_and_reports_are_of_their_types_or_refused(order, data):
    whole = frame(order)
    size = int.from_bytes(whole[:4], "big")
    assert msgspec.msgpack.decode(whole[4:], type=Order) == order
    assert size == len(whole) - 4
    message = data.draw(mangled(whole[4:]) | st.sampled_from(BAD))
    for kind in (Order, Report):
        try:
            found = msgspec.msgpack.decode(message, type=kind)
        except (msgspec.DecodeError, ValueError, RecursionError):
            continue
        assert isinstance(found, kind)
