"""What no engine can beat: counted FLOPs over the published dense peak, bytes that must be read over the bandwidth.

Nobody reaches either. A claimed time below the floor is impossible, whatever the scheduler does (claim C14). For the
requests of a run see :func:`workbench.metrics.request_floors`.
"""

from __future__ import annotations

from dataclasses import dataclass

from workbench.architecture import Architecture
from workbench.i18n import phrase, phrase_counted, phrases
from workbench.simulate.presets import Device


@dataclass(frozen=True, slots=True)
class Floor:
    """The least time that some work can take.

    Attributes:
        what: the work, in words.
        flops: that it needs.
        bytes: of weights and KV cache that it must read.
        devices: how many share it.
        device: their name.
        flops_per_s: dense peak of one.
        bytes_per_s: memory bandwidth of one.
    """

    what: str
    flops: float
    bytes: float
    devices: int
    device: str
    flops_per_s: float
    bytes_per_s: float

    @property
    def compute_s(self) -> float:
        """At the full dense peak of all devices."""
        return self.flops / (self.devices * self.flops_per_s)

    @property
    def bandwidth_s(self) -> float:
        """At the full memory bandwidth of all devices."""
        return self.bytes / (self.devices * self.bytes_per_s)

    @property
    def seconds(self) -> float:
        """The larger of the two: they may overlap, but neither can be left out."""
        return max(self.compute_s, self.bandwidth_s)

    @property
    def arithmetic(self) -> str:
        """The one that counts, written out: "1.46e16 FLOP / (8 x 989 TFLOP/s) = 1.85 s"."""
        if self.compute_s >= self.bandwidth_s:
            work, rate = f"{_plain(self.flops)} FLOP", f"{self.flops_per_s / 1e12:,.6g} TFLOP/s"
        else:
            work, rate = f"{self.bytes / 1e9:,.1f} GB", f"{self.bytes_per_s / 1e9:,.0f} GB/s"
        return f"{work} / ({self.devices} x {rate}) = {_time(self.seconds)}"

    def __str__(self) -> str:
        return f"{self.what} on {self.devices} x {self.device}: at least {self.arithmetic}"


def floor_of(
    architecture: Architecture,
    device: Device,
    devices: int,
    *,
    prefill_tokens: float = 0,
    prefill_pairs: float | None = None,
    decodes: float = 0,
    decode_context: float = 0,
    sampled: float | None = None,
    steps: float = 1,
    weight_bytes: float = 2,
    kv_bytes: float = 2,
    what: str = "",
) -> Floor:
    """The floor of a result row: all that was computed, in however many steps.

    Of layers with a sliding window, attention over given pairs and by decodes is left out: it stays a floor.

    Args:
        architecture: the model.
        device: one of the GPUs.
        devices: how many share the work.
        prefill_tokens: prompt tokens computed; those from the prefix cache are not.
        prefill_pairs: pairs of a query and a key among them; by default those of one prompt from its start.
        decodes: tokens that decode steps made.
        decode_context: tokens with KV that those looked at, in all.
        sampled: positions with logits; by default one for each decode, and one where there is a prompt.
        steps: each reads the weights once.
        weight_bytes: of a weight; one of less than 2 bytes may be multiplied at the device's FP8 rate.
        kv_bytes: of a number in the KV cache.
        what: in words; by default made up.
    """
    a = architecture
    whole = a.layers - a.windowed_layers
    sampled = decodes + bool(prefill_tokens) if sampled is None else sampled
    flops = float(a.flops(prefill_tokens + decodes, 0, sampled)) - float(a.attention_flops(prefill_tokens + decodes, 0))
    if prefill_pairs is None:
        flops += float(a.attention_flops(prefill_tokens, 0))
    else:
        flops += 2.0 * a.heads * (a.head_dim + a.value_dim) * whole * prefill_pairs
    seen = decode_context + decodes
    width = 2 * a.kv_rank + a.rope_dim if a.kv_rank else a.head_dim + a.value_dim
    flops += 2.0 * a.heads * width * whole * seen
    read = seen * a.kv_bytes_per_token(kv_bytes) * whole / a.layers
    each = (prefill_tokens + decodes) / max(steps, 1)
    bytes_read = steps * float(a.read_bytes(each, weight_bytes)) + read
    return Floor(
        what=what or _words(prefill_tokens, decodes, steps, a.name),
        flops=flops,
        bytes=bytes_read,
        devices=devices,
        device=device.name,
        flops_per_s=device.flops * (device.fp8 if weight_bytes <= 1 else 1.0),
        bytes_per_s=device.bandwidth,
    )


def impossible(claimed_s: float, floor: Floor, name: str = "") -> str:
    """Why a claimed time cannot be, in one sentence with the arithmetic; empty where the floor allows it.

    Args:
        claimed_s: what somebody says it took, s.
        floor: of that work.
        name: what was claimed, such as "64K TTFT".
    """
    if claimed_s >= floor.seconds:
        return ""
    times = floor.seconds / claimed_s if claimed_s > 0 else float("inf")
    kind = phrase("dense peak") if floor.compute_s >= floor.bandwidth_s else phrase("full memory bandwidth")
    time = _time(claimed_s)
    return phrase(
        "{claim} cannot be: {what} needs {arithmetic} at the {kind} of {devices} x {device}, {times:.1f} times as "
        "long.",
        claim=phrase("{name} of {time}", name=name, time=time) if name else time,
        what=floor.what,
        arithmetic=floor.arithmetic,
        kind=kind,
        devices=floor.devices,
        device=floor.device,
        times=times,
    )


def _words(prompts: float, decodes: float, steps: float, model: str) -> str:
    parts = [phrase("a prefill of {tokens:,.0f} tokens", tokens=prompts)] if prompts else []
    parts += [phrase_counted("{n:,} decoded token", "{n:,} decoded tokens", int(decodes))] if decodes else []
    work = phrases(" and ", parts) if parts else phrase("nothing")
    if steps > 1:
        return phrase("{work} of {model} in {steps:,.0f} steps", work=work, model=model, steps=steps)
    return phrase("{work} of {model}", work=work, model=model)


def _plain(value: float) -> str:
    return f"{value:.2e}".replace("e+", "e")


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:,.3g} ms" if seconds < 1 else f"{seconds:,.2f} s"
