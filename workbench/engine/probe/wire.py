"""Messages between the probe and the workbench, as msgspec structs.

They meet in a 0700 folder: the probe pushes records into a ZMQ ipc socket that the workbench has bound there, and
reads knob changes from a page of memory (``knob_page``). Times are CLOCK_MONOTONIC seconds, which all processes of a
machine share.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

ENV_FOLDER = "WORKBENCH_PROBE_FOLDER"
RECORDS = "records.sock"
HELLO = "scheduler.hello"  # the scheduler's hello as a file, for a workbench that comes later than it was sent

# Attributes that the probe puts on vLLM's own messages between scheduler and workers.
STEP_ATTRIBUTE = "workbench_step"  # on SchedulerOutput, on its way to the workers
WORK_ATTRIBUTE, HELLO_ATTRIBUTE = "workbench_work", "workbench_hello"  # on ModelRunnerOutput, on its way back


class Part(msgspec.Struct, array_like=True, gc=False):
    """What one request had in one step."""

    request: str  # vLLM's internal id
    tokens: int
    context: int  # tokens with KV before the step
    prefill: bool
    emitted: int = 0  # output tokens that came of it


class Work(msgspec.Struct, array_like=True):
    """A step as the worker saw it. Bytes are resident on CPU and torch-allocated on CUDA."""

    start_s: float
    end_s: float
    before_bytes: int
    peak_bytes: int
    after_bytes: int
    reserved_bytes: int = 0  # torch's reserved memory on CUDA
    probe_us: float = 0.0


class Step(msgspec.Struct, array_like=True, tag="step"):
    """One scheduler step, sent while the next one computes."""

    step: int
    scheduled_s: float
    schedule_us: float  # inside vLLM's own schedule()
    revision: int
    running: int
    waiting: int
    kv_use: float
    preempted: list[str]
    parts: list[Part]
    end_s: float = 0.0
    probe_us: float = 0.0  # the probe's own time in the scheduler, where the step had to wait for it
    work: Work | None = None  # of the rank whose output vLLM takes
    dropped: int = 0  # records dropped so far because the queue was full
    predicted_ms: float | None = None  # what the policy expected the step to take, where it predicts


class SchedulerHello(msgspec.Struct, array_like=True, tag="scheduler"):
    """Sent once when the scheduler is built: what the engine resolved its configuration to."""

    pid: int
    vllm: str
    max_num_batched_tokens: int
    max_num_seqs: int
    max_model_len: int
    chunked_prefill: bool
    prefix_caching: bool
    async_scheduling: bool
    kv_blocks: int
    block_size: int
    chunk: int = 0  # long_prefill_token_threshold
    watermark: float = 0.0
    reserve_full: bool = True


class WorkerHello(msgspec.Struct, array_like=True, tag="worker"):
    """Sent once, at the first step: what the worker holds."""

    pid: int
    rank: int
    device: str
    weights_bytes: int
    kv_bytes: int


class Fault(msgspec.Struct, array_like=True, tag="fault"):
    """The probe met an error of its own; vLLM did not notice."""

    where: str
    error: str


class KnobChange(msgspec.Struct, array_like=True, frozen=True, tag="knobs"):
    """Knobs, as they travel and as the scheduler holds those in force."""

    revision: int
    budget: int
    chunk: int
    max_running: int
    policy: str
    prefill_every: int = 0
    target_gap_ms: float = 200.0
    aging_s: float = 30.0
    watermark: float = 0.0
    reserve_full: bool = True
    prefix_cache: bool = True
    cache_resets: int = 0  # how often the prefix cache was to be emptied since the engine started


class KnobReply(msgspec.Struct, array_like=True, tag="reply"):
    """A knob change was applied before ``step``, or refused with the reason."""

    revision: int
    applied_s: float
    step: int
    error: str = ""


Record = Step | SchedulerHello | WorkerHello | Fault | KnobReply


def endpoint(folder: Path | str) -> str:
    """ZMQ address of the records' socket in ``folder``."""
    return f"ipc://{Path(folder) / RECORDS}"
