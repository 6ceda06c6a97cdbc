"""How much of a model lies on one GPU when it is split: weights, the KV of a token, the activation of a token."""

from __future__ import annotations

from math import ceil

from workbench.architecture import Architecture
from workbench.simulate.steptime.counted import ACTIVATION_BYTES, REPLICATED

# What allocators and kernels' workspaces add to the tensors that are alive together: SmolLM2 on the CPU backend took
# 16.9 kB a token (measured) where its tensors count 12.7 kB.
_SLACK = 1.33


def weights_of(a: Architecture, tp: int, pp: int) -> float:
    """Weights on one GPU of the fullest stage."""
    head = a.vocab * a.hidden / tp
    vectors = a.layers * (2 * a.hidden + a.q_rank + a.kv_rank)
    body = sum(m.weights * m.count / (1 if m.name in REPLICATED else tp) for m in a.matrices if m.name != "lm_head")
    share = ceil(a.layers / pp) / a.layers
    ends = head if a.tied or pp > 1 else 2 * head
    return (body + vectors) * share + ends


def kv_numbers(a: Architecture, tp: int, pp: int) -> float:
    """Numbers that the cache keeps of one token on one GPU; MLA keeps all of them on each."""
    layers = ceil(a.layers / pp)
    if a.kv_rank:
        return layers * (a.kv_rank + a.rope_dim)
    return layers * max(a.kv_heads // tp, 1) * (a.head_dim + a.value_dim)


def activation_bytes(a: Architecture, tp: int) -> float:
    """Bytes that one token of a step takes: the tensors that are alive together at the widest point of a layer.

    Beside the residual: in the MLP its input, the two halves of the gate and their product; in attention its input,
    queries, keys, values and the output. Experts hold all of this once for each expert that the token goes through.
    """
    dense = 3 * a.intermediate / tp
    attention = ((a.heads + 2 * max(a.kv_heads, 1)) * a.head_dim + a.heads * a.value_dim) / tp
    experts = a.experts_per_token * (max(2 * a.expert_intermediate / tp, a.hidden) + a.expert_intermediate / tp)
    experts += 3 * a.shared_intermediate / tp
    return (3 * a.hidden + max(dense, attention, experts if a.moe_layers else 0.0)) * ACTIVATION_BYTES * _SLACK
