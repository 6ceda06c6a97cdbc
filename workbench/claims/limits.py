"""The model and the GPU that the articles' numbers are of; their figures are those of ``data/``."""

from __future__ import annotations

from workbench.hardware import gpu
from workbench.models.architecture import named

LLAMA_70B = named("llama-3.1-70b")
H100 = gpu("h100-sxm")
