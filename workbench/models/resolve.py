"""From the name that a person gives to files that vLLM can load."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from workbench.errors import ModelError
from workbench.i18n import phrase, phrases
from workbench.models import folder as folders
from workbench.models import hub, presets

_EXPECTED = phrase("a preset ({names}), a folder, or a hub id such as org/name", names=", ".join(presets.PRESETS))


@dataclass(frozen=True)
class ModelFiles:
    """A model that is on this machine."""

    name: str  # as it was asked for
    path: str  # for vLLM's --model
    tokenizer_path: Path | None  # tokenizer.json; None where the model has a tokenizer of another kind
    load_format: Literal["auto", "dummy"]  # for vLLM's --load-format
    max_positions: int | None  # longest context; None where the configuration does not say
    origin: str  # source and licence
    config: dict[str, Any] = field(repr=False)


def resolve_model(
    name: str, *, progress: Callable[[str], None] | None = None, offline: bool | None = None, verify: bool = False
) -> ModelFiles:
    """Find a model, or make or fetch it.

    Args:
        name: a preset, a local folder, or a hub id.
        progress: told what happens, a line at a time, in the calling thread.
        offline: never ask the hub; by default ``HF_HUB_OFFLINE`` decides.
        verify: for a preset, compare the contents of the files with their checksums, not only sizes and times.

    Raises:
        ModelError: there is no such model, or it is incomplete, damaged or out of reach.
    """
    tell = progress or (lambda _line: None)
    asked = str(name).strip()
    if not asked or "\x00" in asked:
        raise ModelError("model", asked, _EXPECTED, phrase("name one; the default is smollm2"))
    if asked in presets.PRESETS:
        preset = presets.PRESETS[asked]
        place = presets.prepare(preset, tell, verify=verify)
        return _files(asked, place, preset.origin, preset.load_format)
    path = _expanded(asked)
    try:
        is_folder, is_there = path.is_dir(), path.exists()
    except OSError as error:  # too long a name, or a folder on the way that may not be entered
        expected = phrase("a path that can be read ({why})", why=error.strerror)
        raise ModelError("model", asked, expected, phrase("check the path")) from None
    if is_folder:
        return _local(asked, path)
    if is_there or path.suffix.lower() in (".gguf", ".safetensors", ".bin"):
        raise _not_a_folder(asked, path)
    if asked.startswith(("/", ".", "~")) or "\\" in asked:
        raise _not_there(asked, path)
    if hub.is_hub_id(asked):
        place, origin = hub.fetch_model(asked, tell, offline=offline)
        return _files(asked, place, origin)
    raise ModelError("model", asked, _EXPECTED, _suggestion(asked))


def _expanded(asked: str) -> Path:
    try:
        return Path(asked).expanduser().absolute()
    except RuntimeError:  # ~nobody
        return Path(asked).absolute()


def _local(asked: str, path: Path) -> ModelFiles:
    lacks = folders.missing(path)
    if lacks:
        files = sorted(path.glob("*.gguf"))
        if files:
            raise _not_a_folder(str(files[0]), files[0])
        raise ModelError(
            "model",
            asked,
            phrase("a folder with a whole model"),
            phrase("it lacks {what}: add what is missing", what=phrases(" and ", map(phrase, lacks))),
        )
    return _files(asked, path, f"local folder {path}; {folders.licence(path)}")


def _not_a_folder(asked: str, path: Path) -> ModelError:
    if not path.exists():
        return _not_there(asked, path)
    if path.suffix.lower() == ".gguf":
        return ModelError(
            "model",
            asked,
            phrase("a folder, not a GGUF file"),
            phrase(
                "convert it with `python -m workbench.models.convert FILE FOLDER` (llama family), then give that folder"
            ),
        )
    fix = phrase("give the folder that holds it: {folder}", folder=path.parent)
    return ModelError("model", asked, phrase("a folder, not a file"), fix)


def _not_there(asked: str, path: Path) -> ModelError:
    fix = phrase("check the path (it means {path})", path=path)
    return ModelError("model", asked, phrase("a folder that is there"), fix)


def _suggestion(asked: str) -> str:
    plain = re.sub(r"[\s_.]+", "-", asked.lower())
    close = difflib.get_close_matches(plain, presets.PRESETS, n=1, cutoff=0.6)
    if close:
        return phrase("did you mean {name}?", name=close[0])
    if "://" in asked:
        return phrase("give the part of the address that names the model, org/name")
    return phrase("check the spelling; a folder here is written ./name")


def _files(name: str, place: Path, origin: str, load_format: Literal["auto", "dummy"] = "auto") -> ModelFiles:
    config = folders.read_config(place)
    tokenizer = place / "tokenizer.json"
    return ModelFiles(
        name=name,
        path=str(place),
        tokenizer_path=tokenizer if tokenizer.is_file() else None,
        load_format=load_format,
        max_positions=folders.max_positions(config),
        origin=origin,
        config=config,
    )
