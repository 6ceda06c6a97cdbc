"""Recompute or swap: what it takes to bring back the KV cache of a preempted request, by its length.

Recompute runs the prefill again, from the measured cost of prefill. Swap writes the blocks to the host's memory when
the request is preempted and loads them when it goes on: bytes of KV over the bandwidth of the link, both ways.
vLLM V1 preempts by recompute only; its KV offload is the nearest thing to a swap, on GPUs. What is not measured on
the machine at hand is an estimate and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

import numpy as np
import pandas as pd

from workbench.architecture import Architecture
from workbench.errors import InputError
from workbench.hardware import Gpu, gpu
from workbench.i18n import phrase, phrases
from workbench.metrics.gaps import Floats
from workbench.metrics.mfu import architecture_of
from workbench.metrics.prefill_cost import PrefillCost, prefill_cost
from workbench.trace import Trace

DEFAULT_GPU = "h100-sxm"  # whose link stands in where there is none
SMALLEST = 64  # tokens; the shortest request that the table looks at
# Share of the published dense-bf16 peak that prefill reaches: within -8 to +9 % of measured kernel tables on H100
# (14 points, DESIGN section 1). A bandwidth that is measured needs no such share; a published one is taken as it is.
PREFILL_SHARE = 0.62
_POINTS_PER_OCTAVE = 4


@dataclass(frozen=True, slots=True)
class Link:
    """The way between device and host memory.

    Attributes:
        out_bytes_per_s: towards the host.
        in_bytes_per_s: towards the device.
        source: "measured ..." or "published ...".
    """

    out_bytes_per_s: float
    in_bytes_per_s: float
    source: str

    def seconds(self, size: float, *, write_out: bool = True) -> float:
        """To move so many bytes out (where that counts) and back in, s."""
        return size / self.in_bytes_per_s + (size / self.out_bytes_per_s if write_out else 0)


def crossover(
    trace: Trace | None = None,
    *,
    device: str | None = None,
    devices: int = 1,
    cost: PrefillCost | None = None,
    architecture: Architecture | None = None,
    write_out: bool = True,
    max_tokens: int = 131_072,
) -> pd.DataFrame:
    """Return one row a length: what recompute and what swap take.

    Args:
        trace: of a run whose prefill was measured and whose metadata names the model; may be left out where ``cost``
            and ``architecture`` are given.
        device: GPU whose published link counts; by default the link that was measured in the run, else an H100's.
        devices: GPUs that share the KV cache, each with a link of its own.
        cost: of prefill; by default fitted to the trace.
        architecture: of the model; by default that of the run's metadata.
        write_out: whether the way out counts too; without it the blocks are taken to be in host memory already.
        max_tokens: the longest request.

    Returns:
        Columns ``tokens``, ``recompute_s``, ``swap_s``, ``recompute_source``, ``swap_source``. Where nothing says what
        a way takes, its seconds are NaN and its source says why. ``attrs``: ``crossings`` (tokens, see
        :func:`crossings`), ``summary`` (a sentence), ``recompute_source`` and ``swap_source`` (as in the columns),
        ``kv_bytes_per_token``, ``measured_to`` (tokens; recompute beyond them is extrapolated, None for an estimate).

    Raises:
        InputError: there are no figures of that GPU, or a length or count is below 1.
    """
    if max_tokens < 1 or devices < 1:
        raise InputError("crossover", (max_tokens, devices), "max_tokens and devices of 1 or more", "raise them")
    architecture = architecture or (architecture_of(trace) if trace else None)
    cost = cost or (prefill_cost(trace) if trace else None)
    link = link_of(trace, device)
    tokens = _lengths(max_tokens)
    frame = pd.DataFrame({"tokens": tokens, "recompute_s": np.nan, "swap_s": np.nan})
    computed: str = phrase("not known: too few prefill steps with a measured time")
    swapped = phrase("not known: the run does not say which model it was")
    if cost is not None:
        frame["recompute_s"], computed = [cost.seconds(n) for n in tokens], cost.source
    kv = None if architecture is None else architecture.kv_bytes_per_token(_number_bytes(trace))
    if kv is not None:
        frame["swap_s"] = [link.seconds(kv * n / devices, write_out=write_out) for n in tokens]
        ways = phrase("out and in") if write_out else phrase("in only")
        swapped = phrase("{source}, {ways}", source=link.source, ways=ways)
        swapped += phrase(", {n} links", n=devices) if devices > 1 else ""
    frame["recompute_source"], frame["swap_source"] = computed, swapped
    found = crossings(frame)
    frame.attrs = {
        "crossings": found,
        "summary": _summary(frame, found, {"recompute": computed, "swap": swapped}),
        "recompute_source": computed,
        "swap_source": swapped,
        "kv_bytes_per_token": kv,
        "measured_to": (cost.max_tokens or None) if cost else None,
    }
    return frame


def crossings(frame: pd.DataFrame) -> list[float]:
    """Lengths at which the cheaper of the two changes, in tokens, ascending; linear between the rows in logarithms."""
    frame = frame[(frame["recompute_s"] > 0) & (frame["swap_s"] > 0)]
    x = np.log(frame["tokens"].to_numpy(dtype=np.float64))
    y = np.log(frame["recompute_s"].to_numpy(dtype=np.float64)) - np.log(frame["swap_s"].to_numpy(dtype=np.float64))
    at = np.flatnonzero((y[:-1] < 0) != (y[1:] < 0))
    return [float(np.exp(x[i] - y[i] * (x[i + 1] - x[i]) / (y[i + 1] - y[i]))) for i in at]


def link_of(trace: Trace | None, device: str | None = None) -> Link:
    """The link to count with: a named GPU's published one, else the one measured in the run, else an H100's.

    Raises:
        InputError: there are no figures of that GPU.
    """
    measured = ((trace.meta.get("compute") or {}).get("host_bytes_per_s") if trace else None) or None
    if device is None and measured:
        return Link(measured["to_host"], measured["to_device"], str(measured["source"]))
    chosen = gpu(device or DEFAULT_GPU)
    rate = chosen.pcie.value
    return Link(
        rate,
        rate,
        phrase("estimate: published {rate:,.0f} GB/s each way of {device}", rate=rate / 1e9, device=chosen.name),
    )


def estimated_cost(
    architecture: Architecture, device: Gpu, devices: int = 1, share: float = PREFILL_SHARE
) -> PrefillCost:
    """What prefill would cost on GPUs that are not here: counted FLOPs over a share of the published peak.

    Communication between them is left out.
    """
    per_s = device.flops.value * devices * share
    per_pair = float(architecture.attention_flops(1, 1) - architecture.attention_flops(1, 0))
    return PrefillCost(
        token_s=float(architecture.flops(1, 0) - per_pair) / per_s,
        pair_s=per_pair / per_s,
        fixed_s=0.0,
        source=phrase(
            "estimate: {share:.0%} of the published peak of {devices} × {device}, {model}",
            share=share,
            devices=devices,
            device=device.name,
            model=architecture.name,
        ),
    )


def _number_bytes(trace: Trace | None) -> int:
    """Bytes of a number in the KV cache: those of the engine's data type; 2 (bf16) where that is not said."""
    engine = (trace.meta.get("engine") if trace else None) or {}
    return 4 if (engine.get("config") or {}).get("dtype") == "float32" else 2


def _times(ratio: float) -> str:
    return f"{ratio:,.1f}" if ratio < 100 else f"{ratio:,.0f}"


def _lengths(max_tokens: int) -> Floats:
    """Whole numbers of tokens, evenly in logarithms."""
    low = min(SMALLEST, max_tokens)
    count = 1 + ceil(_POINTS_PER_OCTAVE * np.log2(max_tokens / low))
    return np.unique(np.rint(np.geomspace(low, max_tokens, max(count, 2)))).astype(np.float64)


def _summary(frame: pd.DataFrame, found: list[float], sources: Mapping[str, str]) -> str:
    for way in ("recompute", "swap"):
        if frame[f"{way}_s"].isna().any():
            return phrase("{way}: {why}", way=phrase(way), why=sources[way])
    first, low, high = frame.iloc[0], frame["tokens"].iloc[0], frame["tokens"].iloc[-1]
    recompute, swap = phrase("recompute"), phrase("swap")
    cheaper = [recompute, swap] if first["recompute_s"] < first["swap_s"] else [swap, recompute]
    if not found:
        ratio = frame["recompute_s"] / frame["swap_s"]
        ratio = ratio if cheaper[0] is swap else 1 / ratio
        return phrase(
            "{way} is cheaper at every length from {low:,.0f} to {high:,.0f} tokens, {least} to {most} times: they "
            "never cross within {high:,.0f} tokens",
            way=cheaper[0],
            low=low,
            high=high,
            least=_times(ratio.min()),
            most=_times(ratio.max()),
        )
    parts = [phrase("{way} is cheaper below {tokens:,.0f} tokens", way=cheaper[0], tokens=found[0])]
    parts += [phrase("{way} above {tokens:,.0f}", way=cheaper[n % 2], tokens=at) for n, at in enumerate(found, 1)]
    return phrases(", ", parts)
