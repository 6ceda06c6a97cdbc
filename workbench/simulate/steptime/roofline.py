"""A step from first principles: every matrix product, attention call and all-reduce of a forward pass, one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from workbench.architecture import Architecture, Matrix, pairs
from workbench.simulate.presets import Device, spread
from workbench.simulate.steptime import kernels
from workbench.simulate.steptime.base import Band, Chunk, StepShape
from workbench.simulate.steptime.counted import ACTIVATION_BYTES, REPLICATED, STEP_S, Counted

# MLA's norms, rotations and products with the compressed cache: what its whole module takes beyond the parts counted
# here, for one token in one layer (aiconfigurator-core 0.12, DeepSeek-V3 on H200).
_LATENT_S = 35e-6
# How far whole steps are off the measured kernels on the GPUs whose efficiencies were fitted to these: 90 % of the
# steps that were compared are nearer (tests/simulate/test_tables.py). Experts vary more with their sizes.
_OFF, _OFF_EXPERTS = 0.10, 0.25
_BY_INPUT = ("o", "down", "shared_down", "expert_down")  # cut along their input, the others along their output
_MEMOS = 1 << 16  # token counts remembered; each is a few hundred bytes


class Roofline(Counted):
    """Seconds of a step on GPUs that nobody has here; it comes with a band. Arguments are those of :class:`Counted`."""

    name = "roofline"

    def __init__(
        self,
        architecture: Architecture,
        device: Device,
        tp: int = 1,
        pp: int = 1,
        *,
        weight_bytes: float = 2,
        kv_bytes: float = 2,
        step_s: float = STEP_S,
    ) -> None:
        super().__init__(architecture, device, tp, pp, weight_bytes=weight_bytes, kv_bytes=kv_bytes, step_s=step_s)
        a = architecture
        self._heads = a.heads // tp
        latent = a.kv_rank > 0
        # MLA's compressed cache is the same on every GPU of a group; other caches are shared out by heads.
        width = a.kv_rank + a.rope_dim if latent else max(a.kv_heads // tp, 1) * (a.head_dim + a.value_dim)
        self._kv_token = width * kv_bytes  # of one layer, on one GPU
        self._whole = a.layers - a.windowed_layers
        # Of one prompt token: query and output of each head, written and read once; keys and values are written.
        self._query_io = self._heads * (a.head_dim + a.value_dim) * ACTIVATION_BYTES
        self._pair_flops = 2.0 * (a.head_dim + a.value_dim)
        decode_width = 2 * a.kv_rank + a.rope_dim if latent else a.head_dim + a.value_dim
        self._decode_flops = 2.0 * self._heads * decode_width
        self._products = tuple(_Product.of(one, a, tp) for one in a.matrices if one.name != "lm_head")
        self.body_s = lru_cache(maxsize=_MEMOS)(self._body_s)
        self.head_s = lru_cache(maxsize=_MEMOS)(self._head_s)
        self._call_s = a.layers * (device.efficiency.attention_s + (_LATENT_S if latent else 0.0))
        self._stream = device.bandwidth * device.efficiency.stream
        # MLA unpacks the chunks before again: seconds for each token of them, all layers.
        unpacked = 2.0 * a.layers * a.kv_rank * self._heads * (a.head_dim - a.rope_dim + a.value_dim)
        self._unpack_s = unpacked / (device.flops * device.efficiency.gemm) if latent else 0.0
        self._bounds: tuple[Roofline, Roofline] | None = None

    def seconds(self, step: StepShape) -> float:
        """From the start of the step until its output is there, through all stages of the pipeline."""
        return (
            self.body_s(step.prefill_tokens + step.decodes)
            + self.head_s(step.prefills + step.decodes)
            + self.attention_s(step)
            + self.step_s
        )

    def band(self, step: StepShape) -> Band:
        """With the best and the worst that kernels reach on any GPU that was measured, and the model's own error."""
        if self._bounds is None:
            self._bounds = self.bounds()
        best, worst = self._bounds
        off = 1 + (_OFF_EXPERTS if self.architecture.moe_layers else _OFF)
        return Band(best.seconds(step) / off, self.seconds(step), worst.seconds(step) * off)

    def bounds(self) -> tuple[Roofline, Roofline]:
        """The same model with the best and the worst efficiencies."""
        best, worst = (
            Roofline(
                self.architecture,
                replace(self.device, efficiency=reached),
                self.tp,
                self.pp,
                weight_bytes=self.weight_bytes,
                kv_bytes=self.kv_bytes,
                step_s=self.step_s,
            )
            for reached in spread(self.device.efficiency)
        )
        return best, worst

    def _body_s(self, tokens: int) -> float:
        """Everything that goes with the tokens alone: products, norms, all-reduces, hops."""
        if not tokens:
            return 0.0
        a, device = self.architecture, self.device
        total = sum(product.seconds(device, tokens, self.weight_bytes) for product in self._products)
        wide = a.hidden * ACTIVATION_BYTES
        inner = (a.layers - a.moe_layers) * a.intermediate
        inner += a.moe_layers * (a.experts_per_token * a.expert_intermediate + a.shared_intermediate)
        # Norm with residual: reads and writes both, twice a layer. Gate: reads two, writes one.
        total += 2 * a.layers * kernels.moved_s(device, 4 * wide * tokens)
        total += a.layers * kernels.moved_s(device, 3 * inner / a.layers / self.tp * ACTIVATION_BYTES * tokens)
        total += kernels.moved_s(device, 2 * wide * tokens)
        total += (2 * a.layers + 1) * kernels.all_reduce_s(device, wide * tokens, self.tp)
        if self.pp > 1:
            total += (self.pp - 1) * kernels.hop_s(device, wide * tokens)
        return float(total)

    def _head_s(self, rows: int) -> float:
        a = self.architecture
        if not rows:
            return 0.0
        head = kernels.product_s(self.device, rows, a.hidden, -(-a.vocab // self.tp), max(self.weight_bytes, 2))
        return head + kernels.all_reduce_s(self.device, rows * a.vocab / self.tp * ACTIVATION_BYTES, self.tp)

    def attention_s(self, step: StepShape) -> float:
        """Attention of all layers, in one call a layer: prompts one by one, decodes together."""
        total = self._call_s
        if step.chunks:
            total += self._prompts_s(step.chunks)
        if step.decodes:
            total += self._decodes_s(step)
        return total

    def _prompts_s(self, chunks: tuple[Chunk, ...]) -> float:
        a, device = self.architecture, self.device
        total = unpacked = moved = work = least = 0.0
        if self._whole:
            for chunk in chunks:
                mine, last = kernels.prompt_attention(device, chunk, chunk.pairs, self._heads, self._pair_flops)
                work, least = work + mine, max(least, last)
                moved += chunk.tokens * self._query_io + (chunk.context + 2 * chunk.tokens) * self._kv_token
                unpacked += chunk.context
            total = self._whole * (max(work, least) + moved / self._stream)
        if a.windowed_layers:
            moved = work = least = 0.0
            for chunk in chunks:
                seen = float(pairs(chunk.tokens, chunk.context, a.window))
                near = Chunk(min(chunk.tokens, a.window), min(chunk.context, a.window))
                mine, last = kernels.prompt_attention(device, near, seen, self._heads, self._pair_flops)
                work, least = work + mine, max(least, last)
                moved += chunk.tokens * self._query_io + (near.context + 2 * chunk.tokens) * self._kv_token
            total += a.windowed_layers * (max(work, least) + moved / self._stream)
        return total + unpacked * self._unpack_s

    def _decodes_s(self, step: StepShape) -> float:
        a = self.architecture
        seen = step.decode_context + step.decodes
        total = self._whole * kernels.decode_attention_s(self.device, seen * self._kv_token, seen * self._decode_flops)
        if a.windowed_layers:
            near = min(seen, step.decodes * a.window)
            total += a.windowed_layers * kernels.decode_attention_s(
                self.device, near * self._kv_token, near * self._decode_flops
            )
        return total

    def describe(self) -> dict[str, Any]:
        """Plain data for a run's metadata."""
        reach = self.device.efficiency
        error = "not compared with any measurement" if reach.error is None else f"products within {reach.error:.1%}"
        return {
            "name": self.name,
            "calibrated": False,
            "label": "uncalibrated",
            "source": f"roofline of {self.architecture.name} on {self.tp * self.pp} x {self.device.name}",
            "efficiencies": f"{reach.source} ({error}, median)" if reach.error is not None else f"{reach.source}",
            "error_pct": None,
            "peak_source": self.device.source,
            "stages": self.pp,
        }


@dataclass(frozen=True, slots=True)
class _Product:
    """The products of one kind that one GPU does in a forward pass.

    Attributes:
        count: layers that have it.
        inputs: of this GPU's share of the matrix.
        outputs: likewise.
        experts: there are so many of them in a layer; 0 is one that every token goes through.
        used: experts that a token goes through.
    """

    count: int
    inputs: int
    outputs: int
    experts: int = 0
    used: int = 0

    @classmethod
    def of(cls, matrix: Matrix, architecture: Architecture, tp: int) -> _Product:
        """The share that one of ``tp`` GPUs has of it."""
        a, inputs, outputs = architecture, matrix.inputs, matrix.outputs
        if matrix.name == "qkv" and a.kv_heads < tp:  # KV heads are copied where there are fewer of them than GPUs
            outputs += (tp - a.kv_heads) * (a.head_dim + a.value_dim)
        if matrix.name in _BY_INPUT:
            inputs = -(-inputs // tp)
        elif matrix.name not in REPLICATED:
            outputs = -(-outputs // tp)
        if matrix.used == matrix.count:
            return cls(matrix.count, inputs, outputs)
        return cls(a.moe_layers, inputs, outputs, matrix.count // a.moe_layers, matrix.used // a.moe_layers)

    def seconds(self, device: Device, tokens: int, weight_bytes: float) -> float:
        """All of them, for a step of that many tokens."""
        if not self.experts:
            return self.count * kernels.product_s(device, tokens, self.inputs, self.outputs, weight_bytes)
        # Experts that at least one token is routed to, as expected from a router without preferences, each with its
        # share of the tokens.
        touched = max(round(self.experts * (1 - (1 - self.used / self.experts) ** tokens)), 1)
        rows = -(-tokens * self.used // touched)
        return self.count * kernels.product_s(device, rows, self.inputs, self.outputs, weight_bytes, touched)
