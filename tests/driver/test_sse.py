from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from workbench.driver.sse import EventSplitter


def events_of(*packets):
    splitter = EventSplitter()
    events = [event for packet in packets for event in splitter.feed(packet)]
    return events + splitter.close()


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
        (b"data:a\r\n\r\ndata:  b\r\rdata: c\n\n", [b"a", b" b", b"c"]),  # one space goes, the second stays
        (b"data: a\ndata: b\n\n", [b"a\nb"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
        (b": note\n\nevent: x\nid: 1\n\nretry: 5\ndata: a\n\n", [b"a"]),
        (b"data\n\ndatum: a\n\n data: b\n\n", [b""]),
        (b"data: a\n\n\n\n\ndata: b", [b"a", b"b"]),
        (b"data: a\x0bb\x0cc\xc2\x85d\xe2\x80\xa8e\n\n", [b"a\x0bb\x0cc\xc2\x85d\xe2\x80\xa8e"]),  # no line ends
        (b"", []),
    ],
)
def test_events_are_cut_as_the_standard_says(stream, events):
    assert events_of(stream) == events
    assert events_of(*(stream[i : i + 1] for i in range(len(stream)))) == events


def test_an_event_is_complete_with_its_blank_line_and_not_before():
    splitter = EventSplitter()
    assert splitter.feed(b"data: a\r\n") == []
    assert splitter.feed(b"\r") == [b"a"]
    assert splitter.feed(b"\ndata: b\n") == []
    assert splitter.feed(b"\n") == [b"b"]


def test_the_size_of_an_event_that_is_not_whole_is_known():
    splitter = EventSplitter()
    splitter.feed(b"data: 12345\n")
    splitter.feed(b"data: 678")
    assert splitter.pending_bytes == len(b" 12345") + 1 + len(b"data: 678")
    splitter.feed(b"\n\n")
    assert splitter.pending_bytes == 0


@given(
    data=st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"])), max_size=6),
    end=st.sampled_from([b"\n", b"\r\n", b"\r"]),
    cuts=st.lists(st.integers(0, 200), max_size=12),
)
def test_any_split_into_packets_gives_the_same_events(data, end, cuts):
    stream = b"".join(b"data: " + text.encode() + end + end for text in data)
    at = sorted({0, *(min(cut, len(stream)) for cut in cuts), len(stream)})
    packets = [stream[a:b] for a, b in itertools.pairwise(at)]
    assert events_of(*packets) == [text.encode() for text in data]


@given(st.lists(st.binary(max_size=40)))
def test_random_bytes_never_raise(packets):
    assert all(isinstance(event, bytes) for event in events_of(*packets))


PIECES = [
    b"data: ",
    b"data:",
    b"data",
    b"id: 7",
    b": note",
    b"x",
    b" ",
    b"\n",
    b"\n\n",
    b"\r",
    b"\r\n",
    b"\xef\xbb\xbf",
]


def by_the_standard(stream):
    """The whole stream at once, line by line."""
    found, lines = [], []
    for line in re.split(rb"\r\n|\r|\n", (stream + b"\n\n").removeprefix(b"\xef\xbb\xbf"))[:-1]:
        name, _, value = line.partition(b":")
        if line and name == b"data":
            lines.append(value.removeprefix(b" "))
        elif not line and lines:
            found.append(b"\n".join(lines))
            lines = []
    return found


@given(st.lists(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map(b"".join), max_size=8))
@example([b"data: a\n\n", b"data: b\n", b"data: c\n\ndata: d", b"\n\n\n", b"\ndata: e\n\n"])
def test_whatever_lines_come_in_whatever_packets_the_standard_holds(packets):
    assert events_of(*packets) == by_the_standard(b"".join(packets))
