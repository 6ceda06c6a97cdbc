"""The page that carries knobs: newest wins, half a message is never taken."""

import multiprocessing
import zlib

import pytest

from workbench.engine.probe.knob_page import _HEAD, KnobPage
from workbench.engine.probe.wire import KnobChange


def change(revision, budget=64):
    return KnobChange(revision=revision, budget=budget, chunk=0, max_running=8, policy="chunked")


@pytest.fixture
def pair(tmp_path):
    writer = KnobPage(tmp_path, create=True)
    return writer, KnobPage(tmp_path)


def test_nothing_is_there_at_first(pair):
    assert pair[1].latest() is None


def test_a_change_is_returned_once(pair):
    writer, reader = pair
    writer.write(change(1))
    assert reader.latest() == change(1)
    assert reader.latest() is None


def test_of_several_changes_the_newest_is_returned(pair):
    writer, reader = pair
    for revision in range(1, 1001):
        writer.write(change(revision))
    assert reader.latest() == change(1000)


def test_a_change_that_is_being_written_waits_for_the_next_step(pair):
    writer, reader = pair
    writer.write(change(1))
    sequence, length, checksum = _HEAD.unpack_from(writer._page)
    _HEAD.pack_into(writer._page, 0, sequence + 1, length, checksum)
    assert reader.latest() is None
    _HEAD.pack_into(writer._page, 0, sequence + 2, length, checksum)
    assert reader.latest() == change(1)


def test_a_head_that_is_caught_half_written_is_read_again(pair):
    writer, reader = pair
    writer.write(change(1))
    sequence, length, checksum = _HEAD.unpack_from(writer._page)
    _HEAD.pack_into(writer._page, 0, sequence, 0, 0)  # the writer stores sequence, length, checksum one by one
    assert reader.latest() is None
    _HEAD.pack_into(writer._page, 0, sequence, length, checksum)
    assert reader.latest() == change(1)


def test_a_message_that_does_not_match_its_checksum_is_not_taken(pair):
    writer, reader = pair
    writer.write(change(1))
    writer._page[_HEAD.size] ^= 0xFF
    assert reader.latest() is None


@pytest.mark.parametrize("message", [b"", b"\x00" * 40, b"\xc1" * 8])
def test_nonsense_with_a_right_checksum_is_skipped(pair, message):
    writer, reader = pair
    writer._page[_HEAD.size : _HEAD.size + len(message)] = message
    _HEAD.pack_into(writer._page, 0, 2, len(message), zlib.crc32(message))
    assert reader.latest() is None


def test_a_length_beyond_the_page_is_not_followed(pair):
    writer, reader = pair
    _HEAD.pack_into(writer._page, 0, 2, 1 << 30, 0)
    assert reader.latest() is None


def test_a_reader_without_a_page_is_an_error(tmp_path):
    with pytest.raises(OSError, match=r"knobs\.page"):
        KnobPage(tmp_path)


def _write_many(folder, count):
    page = KnobPage(folder)
    for revision in range(1, count + 1):
        page.write(change(revision, budget=revision))


def test_what_another_process_writes_is_read_whole_and_in_order(tmp_path):
    reader = KnobPage(tmp_path, create=True)
    count = 20_000
    child = multiprocessing.get_context("spawn").Process(target=_write_many, args=(tmp_path, count))
    child.start()
    seen = []
    while not seen or seen[-1].revision < count:
        found = reader.latest()
        if found is not None or (not child.is_alive() and (found := reader.latest()) is not None):
            seen.append(found)
        assert child.exitcode in (None, 0)
    child.join()
    assert all(one.budget == one.revision for one in seen)
    assert [one.revision for one in seen] == sorted(one.revision for one in seen)
