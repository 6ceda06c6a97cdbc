"""The streams that the stub server plays, with what is true of them: bytes, tokens in them, and how each ends.

Each script is something that OpenAI-compatible servers do and that clients have miscounted.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

End = Literal["whole", "cut", "reset"]


@dataclass(frozen=True)
class Packet:
    """What is handed to the socket at once.

    Args:
        wait_s: since the packet before it was due.
        data: the bytes, without HTTP's chunk around them.
        tokens: of each event that these bytes complete and that brings output.
    """

    wait_s: float
    data: bytes
    tokens: tuple[int, ...] = ()


@dataclass(frozen=True)
class Script:
    """One stream and its truth.

    Args:
        packets: in order.
        status: what a client must call the request.
        end: how the connection ends: as HTTP says, closed in the middle of the body, or reset.
        headers_s: how long the headers take.
    """

    packets: tuple[Packet, ...]
    status: str = "ok"
    end: End = "whole"
    headers_s: float = 0.0

    @property
    def arrivals(self) -> list[int]:
        """Tokens of each arrival of output, in order."""
        return [n for packet in self.packets for n in packet.tokens]

    @property
    def tokens(self) -> int:
        """All of them."""
        return sum(self.arrivals)


_PERIOD_S = 0.02
DONE = b"data: [DONE]\n\n"
_PING = b": keep-alive\n\n"
_ERROR = b'data: {"error": {"message": "engine overloaded", "type": "InternalServerError", "code": 500}}\n\n'


def event(text: str = " word", total: int | None = None, finish: str | None = None) -> bytes:
    """A chunk of a completion, some 200 bytes, as vLLM writes it; ``total`` is the running count of output tokens."""
    choice = {"index": 0, "text": text, "logprobs": None, "finish_reason": finish, "stop_reason": None}
    return _sse({**_envelope("text_completion"), "choices": [choice], **_usage(total)})


def delta(total: int | None = None, finish: str | None = None, **brought: str | None) -> bytes:
    """A chunk of a chat completion."""
    choice = {"index": 0, "delta": brought, "logprobs": None, "finish_reason": finish}
    return _sse({**_envelope("chat.completion.chunk"), "choices": [choice], **_usage(total)})


def closing(total: int) -> bytes:
    """The event at the end that brings the usage alone."""
    return _sse({**_envelope("text_completion"), "choices": [], **_usage(total)})


def steady(count: int, period_s: float, usage: bool = True) -> Iterator[Packet]:
    """Single tokens at an even pace, with the end of the stream in the last packet.

    Args:
        count: how many.
        period_s: between two.
        usage: with a running count of tokens.
    """
    for i in range(count):
        last = i == count - 1
        data = event(total=i + 1 if usage else None, finish="length" if last else None)
        yield Packet(period_s, data + (closing(count) + DONE if last else b""), (1,))


def steady_chat(count: int, period_s: float) -> Iterator[Packet]:
    """As :func:`steady`, of a chat: a role alone first, no running count, the usage at the end."""
    yield Packet(0.0, delta(role="assistant", content=""))
    for i in range(count):
        last = i == count - 1
        data = delta(content=" word", finish="length" if last else None)
        yield Packet(period_s, data + (closing(count) + DONE if last else b""), (1,))


def _envelope(kind: str) -> dict[str, Any]:
    return {"id": "cmpl-0123456789abcdef", "object": kind, "created": 1700000000, "model": "stub"}


def _usage(total: int | None) -> dict[str, Any]:
    if total is None:
        return {}
    return {"usage": {"prompt_tokens": 4, "total_tokens": 4 + total, "completion_tokens": total}}


def _sse(chunk: dict[str, Any]) -> bytes:
    # Not escaped: servers send UTF-8, and a character may lie across two packets.
    return b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\n\n"


def _steps(*events: tuple[bytes, int], wait_s: float = _PERIOD_S, tail: bytes = DONE) -> tuple[Packet, ...]:
    """An event a packet, each with the tokens that it brings; ``tail`` follows at once."""
    packets = [Packet(wait_s, data, (n,) if n else ()) for data, n in events]
    return (*packets, Packet(0.0, tail)) if tail else tuple(packets)


def _singles(count: int = 12, **more: Any) -> tuple[Packet, ...]:
    events = [(event(total=i + 1, finish="length" if i == count - 1 else None), 1) for i in range(count)]
    return _steps(*events, **more)


def _pieces(data: bytes, *at: int) -> list[bytes]:
    cuts = [0, *at, len(data)]
    return [data[low:high] for low, high in pairwise(cuts)]


def _one_across(data: bytes, n: int, *at: int) -> tuple[Packet, ...]:
    *first, last = _pieces(data, *at)
    return (*(Packet(0.005, piece) for piece in first), Packet(0.005, last, (n,)))


def _batched(batches: int = 4, size: int = 5) -> tuple[Packet, ...]:
    """Output that a server gathers for 50 ms: several events of a token each in one packet."""
    packets = []
    for batch in range(batches):
        events = b"".join(event(total=batch * size + i + 1) for i in range(size))
        packets.append(Packet(0.05, events, (1,) * size))
    return (*packets, Packet(0.0, event("", batches * size, "length") + DONE))


_SNOW = event("\N{SNOWMAN} \N{LATIN SMALL LETTER E WITH ACUTE} \N{GRINNING FACE}", 1)
_SNOWMAN = "\N{SNOWMAN}".encode()

SCRIPTS: dict[str, Script] = {
    "single tokens": Script(_singles()),
    "several tokens an event": Script(
        _steps((event("a b c", 3), 3), (event(total=4), 1), (event("d e", 8), 4), (event(total=9, finish="length"), 1))
    ),
    "empty first event": Script(_steps((event("", 0), 0), (event(total=1), 1), (event(total=2, finish="stop"), 1))),
    "role-only event": Script(
        _steps(
            (delta(role="assistant", content=""), 0),
            (delta(content="a"), 1),
            (delta(content="b"), 1),
            (delta(finish="stop", content=""), 0),
        )
    ),
    "usage-only event": Script(_singles(tail=closing(12) + DONE)),
    "token without text": Script(  # half of a character: the count goes up, the text comes later
        _steps((event(total=1), 1), (event("", 2), 1), (event("\N{SNOWMAN}", 3, "length"), 1))
    ),
    "no usage": Script(_steps((event(), 1), (event(), 1), (event(finish="stop"), 1))),
    "batches of 50 ms": Script(_batched()),
    "reasoning": Script(
        _steps(
            (delta(role="assistant"), 0),
            (delta(reasoning_content="hm"), 1),
            (delta(reasoning="so"), 1),
            (delta(content="yes", reasoning_content=None), 1),
            (delta(finish="stop"), 0),
        )
    ),
    "keep-alive comments": Script(
        _steps(
            (_PING, 0), (event(total=1), 1), (_PING + _PING, 0), (_PING + event(total=2, finish="stop"), 1), (_PING, 0)
        )
    ),
    "slow headers": Script(_singles(4), headers_s=0.15),
    "error in mid-stream": Script(_steps((event(total=1), 1), (_ERROR, 0), (event(total=2), 1)), status="error"),
    "cut connection": Script(
        _steps((event(total=1), 1), (event(total=2), 1), (event(total=3)[:40], 0), tail=b""), status="error", end="cut"
    ),
    "reset connection": Script(_steps((event(total=1), 1), (event(total=2), 1), tail=b""), status="error", end="reset"),
    "UTF-8 across packets": Script(
        _one_across(_SNOW, 1, _SNOW.index(_SNOWMAN) + 1, _SNOW.index(_SNOWMAN) + 2)
        + _steps((event(total=2, finish="length"), 1))
    ),
    "an event across packets": Script(
        _one_across(event(total=2), 2, 3, 90, 200) + _one_across(event(total=3, finish="length") + DONE, 1, 1, 150)
    ),
    "several events a packet": Script(
        (
            Packet(0.02, event(total=1) + event(total=3) + event(total=4)[:50], (1, 2)),
            Packet(0.02, event(total=4)[50:] + event(total=5, finish="length") + closing(5) + DONE, (1, 1)),
        )
    ),
    "CRLF line ends": Script(tuple(Packet(p.wait_s, p.data.replace(b"\n", b"\r\n"), p.tokens) for p in _singles(6))),
    "no [DONE]": Script(_singles(6, tail=b"")),
    "ended too early": Script(_steps((event(total=1), 1), (event(total=2), 1)), status="error"),
}
