"""The shape of ``run.json``: the types of what is read out of it. What else stands there may be anything."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from workbench.architecture import Architecture
from workbench.config import SLO, parse
from workbench.errors import InputError

_Some = dict[str, Any] | None
_Text = Annotated[
    str, Meta(pattern=r"^[^\x00-\x08\x0b-\x1f\x7f-\x9f]*$")
]  # shown in terminals: nothing that moves them
_Count = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Rate = Annotated[float, Meta(ge=0, le=1e30)]  # FLOP/s or bytes/s
_Seconds = Annotated[float, Meta(ge=0, le=1e9)]


class _Peak(msgspec.Struct):
    source: str | None = None
    flops_per_s: _Rate | None = None


class _Bandwidth(msgspec.Struct):
    bytes_per_s: _Rate
    source: str | None = None


class _Copies(msgspec.Struct):
    to_host: _Rate
    to_device: _Rate
    source: str | None = None


class _Compute(msgspec.Struct):
    architecture: _Some = None
    peak: _Peak | None = None
    bandwidth: _Bandwidth | None = None
    host_bytes_per_s: _Copies | None = None
    missing: dict[str, str] | None = None


class _Simulated(msgspec.Struct):
    step_time_label: str | None = None


class _Engine(msgspec.Struct):
    config: _Some = None
    serve_command: str | None = None
    simulated: _Simulated | None = None
    memory_split: dict[str, _Count | None] | None = None
    resolved: _Some = None
    probe_dropped: _Count | None = None
    decode_floor_ms: _Seconds | None = None
    attached: _Some = None


class _Workload(msgspec.Struct):
    scenario: _Some = None
    traces: _Some = None


class _Run(msgspec.Struct):
    schema: int
    status: _Text
    created: _Text | None = None
    label: _Text | None = None
    scenario: _Text | dict[str, Any] | None = None
    question: _Text | None = None
    title: _Text | None = None
    setting: _Text | dict[str, Any] | None = None
    reason: _Text | None = None
    recorded: _Text | bool | None = None
    saved_from: str | None = None
    seed: int | None = None
    duration_s: _Seconds | None = None
    dropped: _Count | None = None
    compacted: bool = False
    rows: dict[str, _Count] = {}
    torn: list[str] | None = None
    writer: _Some = None
    machine: _Some = None
    versions: _Some = None
    slo: _Some = None
    engine: _Engine | None = None
    compute: _Compute | None = None
    workload: _Workload | None = None


def fault(meta: Any) -> str | None:
    """What in a run's metadata is not as a run leaves it, with its place; None where all that is read is."""
    try:
        found = msgspec.convert(meta, _Run)
        parse(SLO, found.slo or {}, error=InputError)
        if found.compute is not None and found.compute.architecture:
            Architecture.from_dict(found.compute.architecture)
    except (msgspec.ValidationError, InputError) as error:
        return str(error)
    return None
