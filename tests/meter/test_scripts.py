"""The truth of the scripts, worked out by hand; a script that lies would make every client look wrong."""

from __future__ import annotations

import json

import pytest

from workbench.meter.scripts import SCRIPTS, steady, steady_chat

ARRIVALS = {  # tokens of each event with output, and how the request ends
    "single tokens": ([1] * 12, "ok"),
    "several tokens an event": ([3, 1, 4, 1], "ok"),
    "empty first event": ([1, 1], "ok"),
    "role-only event": ([1, 1], "ok"),
    "usage-only event": ([1] * 12, "ok"),
    "token without text": ([1, 1, 1], "ok"),
    "no usage": ([1, 1, 1], "ok"),
    "batches of 50 ms": ([1] * 20, "ok"),
    "reasoning": ([1, 1, 1], "ok"),
    "keep-alive comments": ([1, 1], "ok"),
    "slow headers": ([1] * 4, "ok"),
    "error in mid-stream": ([1, 1], "error"),
    "cut connection": ([1, 1], "error"),
    "reset connection": ([1, 1], "error"),
    "UTF-8 across packets": ([1, 1], "ok"),
    "an event across packets": ([2, 1], "ok"),
    "several events a packet": ([1, 2, 1, 1], "ok"),
    "CRLF line ends": ([1] * 6, "ok"),
    "no [DONE]": ([1] * 6, "ok"),
    "ended too early": ([1, 1], "error"),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_is_true_of_a_script(name):
    script = SCRIPTS[name]
    assert (script.arrivals, script.status) == ARRIVALS[name]
    assert script.tokens == sum(ARRIVALS[name][0])


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_bytes_of_a_script_say_the_same(name):
    """Read independently of the client: whole JSON documents after ``data:``, a growing count or else text."""
    text = b"".join(packet.data for packet in SCRIPTS[name].packets).decode().replace("\r\n", "\n")
    counted, seen = [], 0
    for block in text.split("\n\n"):
        line = "".join(line for line in block.split("\n") if line.startswith("data: ")).removeprefix("data: ")
        if not line.endswith("}") or not json.loads(line).get("choices"):
            continue
        chunk = json.loads(line)
        choice = chunk["choices"][0]
        said = choice.get("text") or any(v for k, v in choice.get("delta", {}).items() if k != "role")
        n = chunk["usage"]["completion_tokens"] - seen if "usage" in chunk else int(bool(said))
        seen += n
        counted += [n] if n else []
    assert counted == SCRIPTS[name].arrivals


def test_a_character_and_an_event_lie_across_packets():
    first, second, *_ = SCRIPTS["UTF-8 across packets"].packets
    for piece in (first.data, second.data):
        with pytest.raises(UnicodeDecodeError):
            piece.decode()
    assert not first.tokens
    assert SCRIPTS["an event across packets"].packets[0].data == b"dat"


def test_a_steady_stream_is_even_and_ends_in_its_last_packet():
    packets = list(steady(3, 0.5))
    assert [(packet.wait_s, packet.tokens) for packet in packets] == [(0.5, (1,))] * 3
    assert packets[-1].data.endswith(b"data: [DONE]\n\n")
    assert b'"completion_tokens": 2' in packets[1].data
    assert b"usage" not in next(steady(3, 0.5, usage=False)).data
    assert 180 <= len(next(steady(3, 0.5, usage=False)).data) <= 220  # the size of what vLLM sends


def test_a_steady_chat_begins_with_a_role():
    role, *packets = steady_chat(2, 0.5)
    assert (role.tokens, b'"role": "assistant"' in role.data) == ((), True)
    assert [packet.tokens for packet in packets] == [(1,), (1,)]
