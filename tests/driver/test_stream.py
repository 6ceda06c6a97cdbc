from __future__ import annotations

import gc
import itertools
import json
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.driver import stream as stream_module
from workbench.driver.arrivals import Arrivals
from workbench.driver.messages import Item, TokenRow
from workbench.driver.stream import Stream


def read(*packets, max_tokens=4, closed=True, cancelled=False, broken=None):
    """What a stream makes of packets that arrive at 1 s, 2 s, ... after zero."""
    tokens = []
    stream = Stream(Item("r", "chat", 0, 0.0, (1, 2), max_tokens), 100.0, 0.0, tokens.append)
    for number, packet in enumerate(packets, 1):
        stream._arrived.append((100.0 + number, packet))
        stream.parse()
    stream._closed, stream._cancelled, stream._break = closed, cancelled, broken
    return tokens, stream.finish()


def event(text="x", total=None, finish=None):
    usage = None if total is None else {"completion_tokens": total}
    return b"data: " + json.dumps({"choices": [{"text": text, "finish_reason": finish}], "usage": usage}).encode()


def test_tokens_carry_index_count_and_the_arrival_of_the_packet_that_completes_them():
    whole = event("ab", 2) + b"\n\n"
    tokens, row = read(whole[:9], whole[9:] + event("c", 3) + b"\n", b"\n", event("d", 4, "length") + b"\n\n")
    assert tokens == [TokenRow("r", 0, 2, 2.0), TokenRow("r", 2, 1, 3.0), TokenRow("r", 3, 1, 4.0)]
    assert (row.status, row.output_tokens, row.first_s, row.last_s) == ("ok", 4, 2.0, 4.0)


def test_tokens_after_an_error_event_are_kept_and_the_first_error_stays():
    error = b'data: {"error": {"message": "first"}}\n\n'
    tokens, row = read(
        event(total=1) + b"\n\n" + error, event(total=4, finish="length") + b"\n\n", error, b"data: {\n\n"
    )
    assert [(token.index, token.n) for token in tokens] == [(0, 1), (1, 3)]
    assert (row.status, row.error, row.output_tokens, row.last_s) == ("error", "first", 4, 2.0)


@pytest.mark.parametrize(
    ("ending", "status"),
    [({}, "ok"), ({"cancelled": True}, "ok"), ({"closed": False, "broken": "ClientPayloadError"}, "ok")],
)
def test_a_request_whose_output_all_came_is_ok_however_its_connection_ended(ending, status):
    assert read(event(total=4) + b"\n\n", **ending)[1].status == status


@pytest.mark.parametrize(
    ("ending", "status", "error"),
    [
        ({}, "error", "the stream ended after 3 of 4 tokens"),
        ({"closed": False, "cancelled": True}, "cancelled", None),
        ({"closed": False, "broken": "ClientPayloadError: cut"}, "error", "ClientPayloadError: cut"),
    ],
)
def test_a_request_with_output_missing_says_why(ending, status, error):
    row = read(event(total=3) + b"\n\n", **ending)[1]
    assert (row.status, row.error, row.output_tokens) == (status, error, 3)


def test_half_an_event_counts_at_an_orderly_end_only():
    assert read(event(total=4))[1].status == "ok"
    cut = read(event(total=4), closed=False, broken="cut")[1]
    assert (cut.status, cut.output_tokens) == ("error", 0)


def test_a_usage_without_a_count_loses_no_token():
    packet = b'data: {"choices": [{"text": "a"}], "usage": {"prompt_tokens": 3}}\n\n'
    tokens, row = read(packet, packet, max_tokens=2)
    assert ([(token.index, token.n) for token in tokens], row.status) == ([(0, 1), (1, 1)], "ok")


def test_a_count_that_falls_takes_no_token_back():
    tokens, row = read(event(total=3) + b"\n\n", event(total=1) + b"\n\n", event(total=4) + b"\n\n")
    assert [(token.index, token.n) for token in tokens] == [(0, 3), (3, 1)]
    assert row.output_tokens == 4


def test_an_event_without_end_is_given_up():
    most = stream_module.MAX_EVENT_BYTES
    row = read(b"data: " + b"x" * most, b"y" * most)[1]
    assert row.status == "error"
    assert row.error == "an event of over 1,048,576 bytes, which is no completion chunk"


STREAM = b"".join(
    [
        b": hello\n\n",
        event("☃", 1).replace(b"\\u2603", "☃".encode()) + b"\r\n\r\n",
        event("", 1) + b"\n\n",
        event("two", 3) + b"\n\n",
        event("é", 4, "length") + b"\r\r",
        b'data: {"choices": [], "usage": {"completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 7}}}\n\n',
        b"data: [DONE]\n\n",
    ]
)


@given(st.lists(st.integers(1, len(STREAM) - 1), unique=True))
def test_any_split_into_packets_gives_the_same_tokens(cuts):
    at = [0, *sorted(cuts), len(STREAM)]
    tokens, row = read(*(STREAM[a:b] for a, b in itertools.pairwise(at)))
    assert [(token.index, token.n) for token in tokens] == [(0, 1), (1, 2), (3, 1)]
    assert [token.client_s for token in tokens] == sorted(token.client_s for token in tokens)
    assert (row.status, row.output_tokens, row.cached_tokens, row.error) == ("ok", 4, 7, None)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["choices", "usage", "error", "text"]), inner),
    max_leaves=8,
)


@given(st.lists(st.binary(max_size=60) | _JSON.map(lambda value: b"data: " + json.dumps(value).encode() + b"\n\n")))
def test_whatever_arrives_the_request_ends_with_a_status(packets):
    tokens, row = read(*packets)
    assert row.status in ("ok", "error")
    assert (row.error is None) == (row.status == "ok")
    assert all(token.n > 0 for token in tokens)
    assert [token.index for token in tokens] == [sum(t.n for t in tokens[:i]) for i in range(len(tokens))]


def test_json_nested_too_deeply_is_an_error_of_the_request():
    row = read(b'data: {"choices": ' + b"[" * 100_000 + b"\n\n")[1]
    assert row.status == "error"
    assert row.error.startswith("an event that is not a completion chunk")


def test_a_request_that_has_ended_is_let_go_of_though_its_connection_lives():
    class Body:
        """An answer of which all is there."""

        exception = staticmethod(lambda: None)
        read_nowait = staticmethod(lambda: b"")
        is_eof = staticmethod(lambda: True)

    arrivals = Arrivals(lambda _packet: None, Body(), 100.0)
    stream = Stream(Item("r", "chat", 0, 0.0, (1, 2), 4), 100.0, 0.0, lambda _row: None)
    stream._arrivals, arrivals.on_end = arrivals, stream.parse
    stream.finish()
    gone = weakref.ref(stream)
    gc.disable()
    try:
        del stream
        assert gone() is None
    finally:
        gc.enable()


def test_an_empty_reason_is_none_until_the_stream_ends():
    packets = [event(finish="") + b"\n\n"] * 2
    _, cut = read(*packets, closed=False, broken="cut")
    assert (cut.status, cut.error, cut.finish_reason) == ("error", "cut", None)
    _, whole = read(*packets, event(finish="stop") + b"\n\n")
    assert (whole.status, whole.finish_reason, whole.output_tokens) == ("ok", "stop", 3)


def test_a_running_count_that_stays_0_is_none():
    closing = b'data: {"choices": [], "usage": {"completion_tokens": 4}}\n\n'
    tokens, row = read(*[event(total=0) + b"\n\n"] * 3, event("", finish="stop") + b"\n\n" + closing)
    assert [(token.index, token.n, token.client_s) for token in tokens] == [(0, 1, 1.0), (1, 1, 2.0), (2, 1, 3.0)]
    assert (row.status, row.output_tokens, row.first_s, row.last_s) == ("ok", 4, 1.0, 3.0)


def test_an_empty_first_event_with_a_count_of_0_brings_nothing():
    tokens, row = read(event("", 0) + b"\n\n", event(total=1) + b"\n\n", event(total=4, finish="stop") + b"\n\n")
    assert [(token.index, token.n) for token in tokens] == [(0, 1), (1, 3)]
    assert (row.first_s, row.output_tokens) == (2.0, 4)


def test_a_thought_that_comes_as_a_list_of_parts_is_output():
    part = b'data: {"choices": [{"delta": {"content": [{"type": "thinking", "thinking": []}]}}]}\n\n'
    empty = b'data: {"choices": [{"delta": {"content": []}}]}\n\n'
    tokens, row = read(empty, part, part, max_tokens=2)
    assert ([(token.index, token.n) for token in tokens], row.status) == ([(0, 1), (1, 1)], "ok")


@pytest.mark.parametrize("more", [{"total": 2**31 - 1}, {"total": 73}])
def test_a_count_that_no_max_tokens_allows_is_no_arrival(more):
    tokens, row = read(event(total=2) + b"\n\n", event(**more) + b"\n\n", event(total=4, finish="length") + b"\n\n")
    assert [(token.index, token.n) for token in tokens] == [(0, 2)]
    assert (row.status, row.output_tokens, row.last_s) == ("error", 2, 1.0)
    assert row.error == f"{more['total']:,} tokens of 4 asked for: the server does not keep to max_tokens"


def test_a_server_that_sends_some_tokens_more_than_were_asked_for_is_borne():
    tokens, row = read(*[event() + b"\n\n"] * 6, event("", finish="length") + b"\n\n")
    assert (len(tokens), row.status, row.output_tokens) == (6, "ok", 6)


def test_a_stream_without_end_is_given_up():
    tokens, row = read(*[(event() + b"\n\n") * 10] * 100)
    assert len(tokens) == 2 * 4 + 64
    assert (row.status, row.error) == ("error", "73 tokens of 4 asked for: the server does not keep to max_tokens")
