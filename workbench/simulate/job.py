"""What travels between the workbench and the simulator's child: msgpack frames with their length before them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from workbench.engine.probe.wire import KnobChange

_LENGTH = 4  # bytes
_LARGEST = 1 << 30


class Ask(msgspec.Struct, array_like=True, gc=False):
    """One request to simulate."""

    request: str
    class_name: str
    priority: int
    arrival_time: float  # planned, virtual seconds; for a class of fixed concurrency, when its stream opens
    prompt_tokens: int
    output_tokens: int
    prompt: bytes = b""  # token ids as little-endian int32; only a prefix cache looks at them


class Swap(msgspec.Struct, array_like=True, frozen=True):
    """Host memory that KV blocks of preempted requests are written to. An estimate: vLLM V1 only recomputes.

    Attributes:
        blocks: KV blocks that the host holds.
        out_s: to write one block out, seconds.
        in_s: to load one back, seconds.
        overlap: transfers run beside the step, which then takes as long as the longer of the two; else one waits.
    """

    blocks: int
    out_s: float
    in_s: float
    overlap: bool = False


class Activation(msgspec.Struct, array_like=True, frozen=True):
    """Memory that a step needs while it runs: ``scale * tokens ** exponent + min(tokens, rows) * row_bytes``.

    Attributes:
        scale: bytes.
        exponent: 1 where it was counted, what was fitted where it was measured.
        row_bytes: of a row of logits.
        rows: most of them.
    """

    scale: float
    exponent: float
    row_bytes: float
    rows: int


class SimJob(msgspec.Struct, tag="job"):
    """One play on one simulated engine, from its first request to its last.

    Attributes:
        number: of the job, in what is said about it.
        requests: in any order; they are played by arrival.
        step_time: the model's plain data, see :func:`workbench.simulate.step_times.load`.
        budget: ``max_num_batched_tokens``.
        seqs: ``max_num_seqs``.
        max_model_len: longest prompt and output.
        blocks: KV blocks.
        block_size: tokens in one.
        prefix_cache: whether blocks are kept for later prompts.
        ahead: async scheduling: a request's next token may be planned before the last one is known.
        depth: steps in flight: 2 with async scheduling, and as many as a pipeline has stages.
        scheduling_policy: ``--scheduling-policy``.
        knobs: in force at the start.
        changes: when, in virtual seconds, which knobs take hold.
        concurrency: for classes of fixed concurrency, how many are in flight at once.
        hold_s: the clock stops here until it is let go (:class:`Until`).
        swap: where preempted requests go; none is recompute, as in vLLM V1.
        most_step_tokens: tokens in a step above which the device has no memory for it; none is no such bound.
        activation: memory of a step by its tokens; none leaves the column null.
        seed: of what is drawn (nothing so far); it is in the record of the job.
        quick: leave out of vLLM's work what makes no difference; the rows are the same without.
        admission_s: from a request's planned arrival until the scheduler has it: client and front end.
        delivery_s: from the end of a step until the client has its tokens: front end and client.
    """

    number: int
    requests: list[Ask]
    step_time: dict[str, Any]
    budget: int
    seqs: int
    max_model_len: int
    blocks: int
    block_size: int
    knobs: KnobChange
    prefix_cache: bool = False
    ahead: bool = True
    depth: int = 2
    scheduling_policy: str = "fcfs"
    changes: list[tuple[float, KnobChange]] = []
    concurrency: dict[str, int] = {}
    hold_s: float | None = None
    swap: Swap | None = None
    most_step_tokens: int | None = None
    activation: Activation | None = None
    seed: int = 0
    quick: bool = True
    admission_s: float = 0.0
    delivery_s: float = 0.0


class Until(msgspec.Struct, tag="until"):
    """Let the clock run up to here and stop again; to the end with none."""

    number: int
    at_s: float | None = None


class Turn(msgspec.Struct, tag="turn"):
    """Knobs that take hold at the present virtual time."""

    number: int
    change: KnobChange


class Join(msgspec.Struct, tag="join"):
    """One more request, at the present virtual time."""

    number: int
    ask: Ask


class Cancel(msgspec.Struct, tag="cancel"):
    """End all requests of a job, now."""

    number: int


Order = SimJob | Until | Turn | Join | Cancel


class Ready(msgspec.Struct, tag="ready"):
    """The child has imported vLLM."""

    pid: int
    vllm: str


class Rows(msgspec.Struct, tag="rows"):
    """Rows of the trace that are new, as Arrow IPC streams by table, and how far the job is."""

    number: int
    now_s: float  # virtual
    ended: int  # requests
    tokens: int  # output tokens, of the whole job so far
    tables: dict[str, bytes]


class Held(msgspec.Struct, tag="held"):
    """The clock stands at the point that was asked for."""

    number: int
    at_s: float


class Ended(msgspec.Struct, tag="ended"):
    """A job is over; all its rows were sent.

    Attributes:
        error: why it could not be played to the end.
        faults: errors of the probe and of policies.
        facts: what was counted beside the rows.
    """

    number: int
    now_s: float
    error: str | None = None
    faults: list[str] = []
    facts: dict[str, float] = {}


class Failed(msgspec.Struct, tag="failed"):
    """The child met an error that belongs to no job."""

    error: str


Report = Ready | Rows | Held | Ended | Failed

order_of = msgspec.msgpack.Decoder(Order).decode
report_of = msgspec.msgpack.Decoder(Report).decode


def frame(message: Order | Report) -> bytes:
    """A message as it goes through a pipe."""
    body = msgspec.msgpack.encode(message)
    return len(body).to_bytes(_LENGTH, "big") + body


def read_frame(read: Callable[[int], bytes]) -> bytes | None:
    """The body of the next frame; none at the end of the stream.

    Args:
        read: gives exactly so many bytes, or fewer where the stream ends.
    """
    head = read(_LENGTH)
    size = int.from_bytes(head, "big")
    if len(head) < _LENGTH or size > _LARGEST:
        return None
    body = read(size)
    return body if len(body) == size else None
