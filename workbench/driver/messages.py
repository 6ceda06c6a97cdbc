"""Messages between the workbench and the driver's child: orders down a pipe, rows up a ZMQ socket."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import msgspec

ROWS = "rows.sock"
_REFUSED = re.compile(r"status [34]\d\d:")


class Target(msgspec.Struct, tag="target"):
    """The server to talk to; the first order of a child."""

    url: str  # of the completions endpoint
    api_key: str  # empty: none is sent
    model: str
    chat: bool = False  # the endpoint is that of chat completions; prompts are texts
    dialect: Literal["vllm", "sglang", "plain"] = "vllm"  # which fields beyond the API's own it takes
    verify: str = ""  # TLS: empty checks against the system's authorities, a path against those of a file
    insecure: bool = False  # TLS: does not check at all


class Item(msgspec.Struct, array_like=True, gc=False):
    """One request to play."""

    request: str
    class_name: str
    priority: int
    arrival_s: float
    # Token ids (a tuple of ints costs the garbage collector nothing, a list is walked each time), or a text.
    prompt: tuple[int, ...] | str
    output_tokens: int


class Plan(msgspec.Struct, tag="plan"):
    """One request of a play that begins later, so that the zero need not wait for long prompts to be read."""

    play: int
    item: Item


class Begin(msgspec.Struct, tag="begin"):
    """Play what was planned."""

    play: int
    zero: float  # CLOCK_MONOTONIC
    concurrency: dict[str, int]
    hold_s: float | None = None  # requests planned from here on wait for a Release


class Release(msgspec.Struct, tag="release"):
    """Send what was held."""

    play: int


class Add(msgspec.Struct, tag="add"):
    """One more request, now."""

    play: int
    item: Item


class Cancel(msgspec.Struct, tag="cancel"):
    """End all requests of a play."""

    play: int


Order = Target | Plan | Begin | Release | Add | Cancel


class TokenRow(msgspec.Struct, array_like=True, gc=False):
    """One arrival of output; seconds from the play's zero."""

    request: str
    index: int
    n: int
    client_s: float


class LateRow(msgspec.Struct, array_like=True, gc=False):
    """The client's event loop ran late; seconds from the play's zero."""

    t_s: float  # when it noticed
    late_s: float


class RequestRow(msgspec.Struct, rename={"class_name": "class"}):
    """One request that has ended, or that never began."""

    request: str
    class_name: str
    priority: int
    prompt_tokens: int | None  # of a text: as the server counts them
    max_tokens: int
    planned_s: float
    sent_s: float | None = None
    first_s: float | None = None
    last_s: float | None = None
    done_s: float | None = None
    output_tokens: int = 0
    cached_tokens: int | None = None
    status: str = "unfinished"
    finish_reason: str | None = None
    error: str | None = None


class Rows(msgspec.Struct, tag="rows"):
    """What arrived since the last message."""

    play: int
    tokens: list[TokenRow]
    requests: list[RequestRow]
    in_flight: int
    late: list[LateRow] = []


class Done(msgspec.Struct, tag="done"):
    """All requests of a play have ended."""

    play: int


class Failed(msgspec.Struct, tag="failed"):
    """The child met an error of its own, which is no request's."""

    error: str


Report = Rows | Done | Failed


def frame(order: Order) -> bytes:
    """An order as it goes down the pipe: four bytes of length, then msgpack."""
    body = msgspec.msgpack.encode(order)
    return len(body).to_bytes(4, "big") + body


def row_of(item: Item, planned_s: float) -> RequestRow:
    """The row of a request that has not been sent yet."""
    return RequestRow(
        request=item.request,
        class_name=item.class_name,
        priority=item.priority,
        prompt_tokens=None if isinstance(item.prompt, str) else len(item.prompt),
        max_tokens=item.output_tokens,
        planned_s=planned_s,
    )


def is_refused(row: RequestRow) -> bool:
    """Whether the server answered that this request is wrong, which says nothing of the server's own state."""
    return row.error is not None and _REFUSED.match(row.error) is not None


def rows_address(folder: Path) -> str:
    """ZMQ address of the rows socket in ``folder``."""
    return f"ipc://{folder / ROWS}"
