"""How long single operations take on one device: matrix products with waves, attention, all-reduce. Seconds and bytes.

Each is a roofline of its own: compute at the share of the peak that such kernels reach, memory at the share of its
bandwidth, and a call's own cost.
"""

from __future__ import annotations

from math import ceil

from workbench.simulate.presets import Device
from workbench.simulate.steptime.base import Chunk

# Output tiles that matrix product libraries choose from, and how much longer the smaller ones take for the same work.
# Fitted to the products of five GPUs in aiconfigurator-core 0.12, as was the share of a wave's idle processors that
# splitting the work along the inner dimension does not win back.
_TILES = ((256, 128, 1.0), (128, 128, 1.02), (64, 128, 1.15), (64, 64, 1.7))
_IDLE = 0.3
# Products of experts (vLLM's fused MoE) against dense ones, fitted likewise with tokens spread by a power law: share of
# the rate, of the bandwidth (above 1, as such a router leaves more experts alone than an even one), and a call's cost.
_EXPERT_RATE, _EXPERT_STREAM, _EXPERT_S = 0.48, 1.15, 12e-6
_BLEND = 4  # compute and memory overlap, but not fully where they are about equal
_ROWS = 128  # query tokens of a FlashAttention tile; a tile computes whole blocks of keys past the diagonal
# Shares of PCIe that an all-reduce of so many GPUs without NVLink reaches, measured on L40S (aiconfigurator-core 0.12,
# vLLM 0.22): more than two go through the host's bridges and memory.
_PCIE_SHARE = {2: 0.59, 4: 0.12, 8: 0.06}


def product_s(device: Device, rows: int, inner: int, columns: int, weight_bytes: float, experts: int = 0) -> float:
    """A matrix product of ``rows`` tokens with an ``inner x columns`` matrix of weights.

    Tiles of the output are dealt to the device's processors in waves. The last wave takes as long as a full one for
    the processors that have a tile in it; 0.3 of what the others could have done meanwhile is lost.

    Args:
        device: that computes.
        rows: tokens.
        inner: numbers that a token brings.
        columns: numbers that it leaves with.
        weight_bytes: of one weight; 1 computes in FP8 where the device is faster at that.
        experts: so many products of that size in one call; 0 is one that every token goes through.
    """
    reach, repeat = device.efficiency, max(experts, 1)
    peak = device.flops * reach.gemm * (device.fp8 if weight_bytes <= 1 else 1.0)
    stream, call = device.bandwidth * reach.stream, reach.gemm_s
    if experts:
        peak, stream, call = peak * _EXPERT_RATE, stream * _EXPERT_STREAM, call + _EXPERT_S
    if device.processors == 1:
        compute = 2.0 * rows * inner * columns * repeat / peak
    else:
        each = 2.0 * inner * device.processors / peak
        compute = min(
            _waves(ceil(rows / high) * ceil(columns / wide) * repeat / device.processors) * high * wide * slow
            for high, wide, slow in _TILES
        )
        compute *= each
    moved = repeat * (inner * columns * weight_bytes + 2.0 * rows * (inner + columns))
    memory = moved / stream
    longer, shorter = (compute, memory) if compute > memory else (memory, compute)
    return float(longer * (1 + (shorter / longer) ** _BLEND) ** (1 / _BLEND) + call)


def _waves(full: float) -> float:
    return full + _IDLE * (ceil(full) - full)


def moved_s(device: Device, count: float) -> float:
    """An operation that only moves bytes: norms, activations, the embedding."""
    return count / (device.bandwidth * device.efficiency.stream) + device.efficiency.gemm_s


def prompt_attention(device: Device, chunk: Chunk, pairs: float, heads: int, flops: float) -> tuple[float, float]:
    """Attention of one chunk of a prompt in one layer, without reading and writing: two times, s.

    FlashAttention deals tiles of 128 query tokens and one head to the processors. The diagonal costs half a tile more
    than its pairs, and however many processors there are, a call lasts as long as the last tile of its longest chunk.
    Where there is KV before the chunk and too few tiles, the keys are split over the processors: context has no such
    floor.

    Args:
        device: that computes.
        chunk: tokens and context.
        pairs: causal pairs of a query and a key, in this layer.
        heads: query heads on this device.
        flops: of one pair and head.

    Returns:
        What it adds to the work of the call, and the least that the call takes.
    """
    rate = device.flops * device.efficiency.attention
    if device.processors == 1:
        return heads * flops * pairs / rate, 0.0
    return heads * flops * (
        pairs + chunk.tokens * _ROWS
    ) / rate, _ROWS * flops * chunk.tokens * device.processors / rate


def decode_attention_s(device: Device, bytes_read: float, flops: float) -> float:
    """Attention of all decodes in one layer, without the call's own cost: reading their keys and values, mostly."""
    reach = device.efficiency
    read, compute = bytes_read / (device.bandwidth * reach.kv), flops / (device.flops * reach.attention)
    return read if read > compute else compute


def all_reduce_s(device: Device, count: float, devices: int) -> float:
    """Sum ``count`` bytes over devices: in one exchange while small, else by scatter and gather in a ring.

    A ring moves 2 (n - 1) / n of the bytes over each link.
    """
    if devices == 1:
        return 0.0
    reach = device.efficiency
    if device.nvlink:
        rate = device.nvlink * reach.link
    else:
        nearest = min(_PCIE_SHARE, key=lambda known: abs(known - devices))
        rate = device.pcie * _PCIE_SHARE[nearest]
    at_once = reach.reduce_s + (devices - 1) * count / rate
    ring = reach.ring_s + 2 * (devices - 1) / devices * count / rate
    return min(at_once, ring)


def hop_s(device: Device, count: float) -> float:
    """Hand ``count`` bytes to the next stage of a pipeline."""
    rate = (device.nvlink or device.pcie) * device.efficiency.link
    return device.efficiency.reduce_s + count / rate
