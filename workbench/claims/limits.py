"""Physical limits that the articles' numbers are held against: FLOPs, bandwidth and memory of a 70B model on H100s.

Sources: Llama-3.1-70B's ``config.json`` (80 layers, hidden 8,192, 8 KV heads of 128) and model card (70.6 billion
parameters); NVIDIA's H100 SXM data sheet (989 TFLOP/s dense bf16, 3.35 TB/s, 80 GB).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Model:
    """What the limits need to know of a dense model in bf16."""

    name: str
    parameters: float
    layers: int
    width: int
    kv_width: int  # KV heads times their size

    def prefill_flop(self, tokens: int) -> float:
        """FLOPs of a whole prefill: 2 a weight and token, and causal attention over what came before."""
        return 2 * self.parameters * tokens + 2 * self.layers * self.width * float(tokens) ** 2

    @property
    def weight_bytes(self) -> float:
        """Size of the weights."""
        return 2 * self.parameters

    @property
    def kv_bytes(self) -> int:
        """KV cache of one token: a key and a value of 2 bytes a number in each layer."""
        return 2 * 2 * self.layers * self.kv_width


@dataclass(frozen=True)
class Device:
    """A device's published peaks."""

    name: str
    flops: float  # a second, dense bf16
    bandwidth: float  # bytes a second
    memory: float  # bytes

    @property
    def ridge_tokens(self) -> float:
        """Tokens in a step from which reading 2-byte weights takes less time than computing with them.

        A weight costs 2 bytes and 2 FLOPs a token, so that is FLOPs over bytes.
        """
        return self.flops / self.bandwidth


LLAMA_70B = Model("Llama-3.1-70B", parameters=70.6e9, layers=80, width=8192, kv_width=8 * 128)
H100 = Device("H100", flops=989e12, bandwidth=3.35e12, memory=80e9)
