"""How long a step takes: one model a file, behind one interface. No vllm here."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from workbench.errors import InputError
from workbench.simulate.steptime.base import KINDS, Band, Chunk, StepShape, StepTime

__all__ = ["KINDS", "MODELS", "Band", "Chunk", "StepShape", "StepTime", "from_spec"]

MODELS = {"calibrated": "Calibrated", "roofline": "Roofline", "tables": "Tables", "edge": "Edge", "varied": "Varied"}
_FILES = {"edge": "bands", "varied": "varied"}


def from_spec(spec: Mapping[str, Any]) -> StepTime:
    """Make a model from what its ``spec()`` gave: how it travels to the simulator's child.

    Raises:
        InputError: there is no such model, or it cannot be made.
    """
    kind = str(spec.get("kind"))
    if kind not in MODELS:
        raise InputError("step-time model", kind, f"one of {', '.join(MODELS)}", "see workbench.simulate.steptime")
    module = import_module(f"{__name__}.{_FILES.get(kind, kind)}")
    made: StepTime = getattr(module, MODELS[kind]).from_spec(dict(spec))
    return made
