"""What a transformer costs: its matrices, and from them FLOPs, bytes and the size of its KV cache.

Counted is what the model needs, as MFU is defined (PaLM, arXiv 2204.02311, appendix B): 2 FLOPs a weight that a token
goes through, and for attention 2 FLOPs a multiplied pair of numbers, for scores and for values, over the causal pairs
only. Norms, activations and rotations are left out: they are below 1 %. What an engine computes beyond that (padding,
logits of positions that nobody samples) lowers its utilisation, as it should.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from workbench.errors import InputError

Floats = NDArray[np.float64]
_MOST = 1 << 40  # of any size: no model has as many of anything


@dataclass(frozen=True, slots=True)
class Matrix:
    """Weight matrices of one kind and shape.

    Attributes:
        name: what they do; "lm_head" is the only one that not every token goes through.
        inputs: numbers a token brings.
        outputs: numbers it leaves with.
        count: how many there are in the model.
        used: how many of them one token goes through.
    """

    name: str
    inputs: int
    outputs: int
    count: int
    used: int

    @property
    def weights(self) -> int:
        """Weights of one of them."""
        return self.inputs * self.outputs


@dataclass(frozen=True, slots=True)
class Architecture:
    """The shape of a decoder-only transformer with gated MLPs; sizes are in numbers, not bytes.

    Attributes:
        name: the model, as people call it.
        layers: transformer layers.
        hidden: width of the residual stream.
        heads: query heads.
        kv_heads: key and value heads; fewer than ``heads`` is GQA.
        head_dim: width of a query or key head.
        value_dim: width of a value head; that of a key but for MLA.
        intermediate: width of a dense MLP.
        vocab: size of the vocabulary.
        tied: the head is the embedding.
        qkv_bias: queries, keys and values have a bias.
        window: tokens that a layer with a sliding window looks back, itself included; 0 is none.
        windowed_layers: how many layers have that window.
        moe_layers: layers with experts instead of a dense MLP.
        experts: routed experts in each of them.
        experts_per_token: of which a token goes through so many.
        expert_intermediate: width of one expert.
        shared_intermediate: width of what every token goes through beside them.
        q_rank: MLA's rank of the queries; 0 where they are not compressed.
        kv_rank: MLA's rank of keys and values, the width of what it caches; 0 is no MLA.
        rope_dim: the part of an MLA head that carries the position, cached once for all heads.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    value_dim: int
    intermediate: int
    vocab: int
    tied: bool = False
    qkv_bias: bool = False
    window: int = 0
    windowed_layers: int = 0
    moe_layers: int = 0
    experts: int = 0
    experts_per_token: int = 0
    expert_intermediate: int = 0
    shared_intermediate: int = 0
    q_rank: int = 0
    kv_rank: int = 0
    rope_dim: int = 0

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Self:
        """Take it from what :meth:`as_dict` gave; keys of later versions are ignored.

        Raises:
            InputError: a size is missing.
        """
        try:
            found = msgspec.convert(facts, cls)
        except ValueError as error:  # msgspec's, with the place
            raise InputError("architecture", facts, f"all sizes of a model ({error})", "record it again") from None
        wrong = [name for name, size in asdict(found).items() if isinstance(size, int) and not 0 <= size < _MOST]
        if wrong:
            raise InputError(f"architecture: {wrong[0]}", facts, "a size that a model can have", "record it again")
        return found

    def as_dict(self) -> dict[str, Any]:
        """Plain data for a run's metadata."""
        return asdict(self)

    @property
    def matrices(self) -> tuple[Matrix, ...]:
        """Every weight matrix, in the order of a forward pass."""
        dense, moe = self.layers - self.moe_layers, self.moe_layers
        shapes: list[tuple[str, int, int, int, int]] = []
        if self.kv_rank:
            if self.q_rank:
                shapes.append(("q_a", self.hidden, self.q_rank, self.layers, self.layers))
            wide = self.heads * (self.head_dim - self.rope_dim + self.value_dim)
            shapes += [
                ("q_b", self.q_rank or self.hidden, self.heads * self.head_dim, self.layers, self.layers),
                ("kv_a", self.hidden, self.kv_rank + self.rope_dim, self.layers, self.layers),
                ("kv_b", self.kv_rank, wide, self.layers, self.layers),
            ]
        else:
            shapes.append(("qkv", self.hidden, self._qkv, self.layers, self.layers))
        shapes += [
            ("o", self.heads * self.value_dim, self.hidden, self.layers, self.layers),
            ("gate_up", self.hidden, 2 * self.intermediate, dense, dense),
            ("down", self.intermediate, self.hidden, dense, dense),
            ("router", self.hidden, self.experts, moe, moe),
            ("shared_gate_up", self.hidden, 2 * self.shared_intermediate, moe, moe),
            ("shared_down", self.shared_intermediate, self.hidden, moe, moe),
        ]
        for name, inputs, outputs in (
            ("expert_gate_up", self.hidden, 2 * self.expert_intermediate),
            ("expert_down", self.expert_intermediate, self.hidden),
        ):
            shapes.append((name, inputs, outputs, moe * self.experts, moe * self.experts_per_token))
        shapes.append(("lm_head", self.hidden, self.vocab, 1, 1))
        return tuple(Matrix(*shape) for shape in shapes if shape[1] * shape[2] * shape[3])

    @property
    def _qkv(self) -> int:
        return (self.heads + self.kv_heads) * self.head_dim + self.kv_heads * self.value_dim

    @property
    def parameters(self) -> int:
        """Weights in all: matrices, embedding, two norms a layer and the last, MLA's own norms, biases of Q, K, V."""
        stored = sum(m.weights * m.count for m in self.matrices if not (self.tied and m.name == "lm_head"))
        vectors = self.layers * (2 * self.hidden + self.q_rank + self.kv_rank) + self.hidden
        if self.qkv_bias and not self.kv_rank:
            vectors += self.layers * self._qkv
        return stored + self.vocab * self.hidden + vectors

    @property
    def active_parameters(self) -> int:
        """Weights that a token is multiplied with, the head included; an embedding is only looked up."""
        return sum(m.weights * m.used for m in self.matrices)

    def weight_bytes(self, bytes_each: float = 2) -> float:
        """Size of the weights; 2 bytes each is bf16."""
        return self.parameters * bytes_each

    def read_bytes(self, tokens: ArrayLike, bytes_each: float = 2) -> Floats:
        """Bytes of weights that a step of that many tokens reads.

        Every matrix is read once, whatever the tokens. Of the experts it is those that at least one token is routed
        to, as expected from a router without preferences: E (1 - (1 - k/E)^tokens).
        """
        tokens = np.asarray(tokens, dtype=np.float64)
        total = np.zeros_like(tokens)
        for m in self.matrices:
            share = 1 - (1 - m.used / m.count) ** tokens if m.used < m.count else np.sign(tokens)
            total = total + m.weights * m.count * share
        return np.asarray(total * bytes_each)

    def kv_bytes_per_token(self, bytes_each: float = 2) -> float:
        """What the KV cache holds for a token; MLA keeps the compressed form, once for all heads."""
        width = self.kv_rank + self.rope_dim if self.kv_rank else self.kv_heads * (self.head_dim + self.value_dim)
        return self.layers * width * bytes_each

    def flops(
        self, tokens: ArrayLike, context: ArrayLike, sampled: ArrayLike = 0, *, decode: ArrayLike = False
    ) -> Floats:
        """FLOPs of parts of steps: each some tokens of one request, over what it has in its KV cache.

        Args:
            tokens: tokens computed.
            context: tokens with KV before.
            sampled: positions whose logits are wanted: 1 for a decode or the last chunk of a prompt, else 0.
            decode: whether it is a decode; see :meth:`attention_flops`.

        Returns:
            One number a part.
        """
        body = 2 * sum(m.weights * m.used for m in self.matrices if m.name != "lm_head")
        head = 2 * self.hidden * self.vocab
        tokens, sampled = np.asarray(tokens, dtype=np.float64), np.asarray(sampled, dtype=np.float64)
        return np.asarray(body * tokens + head * sampled + self.attention_flops(tokens, context, decode=decode))

    def attention_flops(self, tokens: ArrayLike, context: ArrayLike, *, decode: ArrayLike = False) -> Floats:
        """FLOPs of scores and weighted values: 4 x heads x head_dim a pair and layer where both have that width.

        An MLA decode works on the compressed cache, as unpacking it for one token would cost far more: its scores are
        ``kv_rank + rope_dim`` wide, its values ``kv_rank``. An MLA prefill unpacks; doing so again for earlier chunks
        is left out, being the price of chunking and not of the model.
        """
        width = np.full(np.shape(decode), float(self.head_dim + self.value_dim))
        if self.kv_rank:
            width = np.where(decode, 2.0 * self.kv_rank + self.rope_dim, width)
        whole = (self.layers - self.windowed_layers) * pairs(tokens, context)
        near = self.windowed_layers * pairs(tokens, context, self.window) if self.windowed_layers else 0.0
        return np.asarray(2 * self.heads * width * (whole + near))


def pairs(tokens: ArrayLike, context: ArrayLike, window: int = 0) -> Floats:
    """Pairs of a query and a key that causal attention multiplies: each token with those before it and itself."""
    tokens, context = np.asarray(tokens, dtype=np.float64), np.asarray(context, dtype=np.float64)

    def up_to(count: Floats) -> Floats:
        near = np.minimum(count, window) if window else count
        return np.asarray(near * (near + 1) / 2 + (count - near) * window)

    return np.asarray(up_to(context + tokens) - up_to(context))
