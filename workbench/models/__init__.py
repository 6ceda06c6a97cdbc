"""Models: presets made from an installed package, local folders, and the Hugging Face hub."""

from workbench.models.presets import Preset, list_presets
from workbench.models.resolve import ModelFiles, resolve_model

__all__ = ["ModelFiles", "Preset", "list_presets", "resolve_model"]
