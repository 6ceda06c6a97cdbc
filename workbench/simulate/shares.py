"""Parts of a GPU's memory, and those that are there from the start: weights, what GPUs talk by, CUDA graphs."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal

from workbench.architecture import Architecture
from workbench.simulate.sizes import weights_of
from workbench.units import MIB

Origin = Literal["measured", "estimate"]
# What the CUDA context, and NCCL's buffers by size of the group, take on one GPU: observed by aiconfigurator-core 0.12
# (systems/h100_sxm.yaml, "nccl_mem"; the context is our estimate for one process).
_CONTEXT = 550 * MIB
_NCCL = {1: 0, 2: 342 * MIB, 4: 392 * MIB, 8: 392 * MIB}
# CUDA graphs of vLLM's default sizes: by layer, since every kernel of every layer is recorded for each size. A 7B model
# of 28 layers takes about 0.6 GiB; an estimate.
_GRAPH_LAYER = 20 * MIB


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the memory.

    Attributes:
        name: what it holds.
        bytes: its size.
        origin: whether that was measured.
        source: how it was found.
    """

    name: str
    bytes: float
    origin: Origin
    source: str


def resident(
    architecture: Architecture,
    tp: int,
    pp: int,
    weight_bytes: float,
    *,
    weights: float | None,
    graphs: bool,
) -> tuple[Share, ...]:
    """What lies in the memory whatever the step, on one GPU of the fullest stage.

    Args:
        architecture: the model.
        tp: tensor parallel.
        pp: pipeline parallel.
        weight_bytes: of a weight.
        weights: bytes that loading the weights took, where an engine has told; None counts them.
        graphs: CUDA graphs are captured.
    """
    if weights is not None:
        shares = [Share("weights", weights, "measured", "what loading them took")]
    else:
        counted = weights_of(architecture, tp, pp) * weight_bytes
        shares = [Share("weights", counted, "estimate", f"{weight_bytes:g} bytes each, counted from the sizes")]
    group = max(one for one in _NCCL if one <= tp * pp)
    shares.append(Share("communication", _NCCL[group] + _CONTEXT, "estimate", "NCCL buffers and CUDA context"))
    if graphs:
        layers = ceil(architecture.layers / pp)
        shares.append(Share("graphs", layers * _GRAPH_LAYER, "estimate", "CUDA graphs, 20 MiB a layer"))
    return tuple(shares)
