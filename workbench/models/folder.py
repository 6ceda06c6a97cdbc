"""What a model folder must hold, and what is read out of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from workbench.errors import ModelError
from workbench.i18n import marked, phrase
from workbench.json_file import parse_json, read_json

_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tekken.json", "vocab.json", "*.tiktoken")
_WEIGHTS = ("*.safetensors", "*.bin", "*.pt")
_POSITIONS = ("max_position_embeddings", "n_positions", "max_sequence_length", "max_seq_len", "seq_length")


def read_config(folder: Path, what: str = "model") -> dict[str, Any]:
    """Read ``config.json``.

    Raises:
        ModelError: it is not there, or not the configuration of a model.
    """
    path = folder / "config.json"
    fix = phrase("give a folder as `save_pretrained` or a hub download writes it")
    try:
        config = read_json(path)
    except OSError:
        raise ModelError(what, folder, phrase("a folder with config.json that can be read"), fix) from None
    except ValueError:
        raise ModelError(what, path, phrase("valid JSON"), phrase("fetch or write the file again")) from None
    if not isinstance(config, dict) or not (config.get("architectures") or config.get("model_type")):
        raise ModelError(what, path, phrase("the configuration of a model, with 'architectures' or 'model_type'"), fix)
    return config


def missing(folder: Path, *, weights: bool = True) -> list[str]:
    """Name what a model folder lacks; empty when it is complete."""
    lacks = [] if (folder / "config.json").is_file() else ["config.json"]
    if not _any(folder, _TOKENIZERS):
        lacks.append(marked("a tokenizer (tokenizer.json, tokenizer.model, ...)"))
    if not weights:
        return lacks
    found = _any(folder, _WEIGHTS)
    if not found:
        lacks.append(marked("weights (*.safetensors)"))
    lacks += sorted(shard for shard in _shards(folder) if not (folder / shard).is_file())
    broken = [(path, fault) for path in found if path.suffix == ".safetensors" and (fault := _broken(path))]
    return lacks + [f"a whole {path.name} ({fault})" for path, fault in broken]


def max_positions(config: dict[str, Any]) -> int | None:
    """Return the longest context in tokens that a configuration allows; None where it does not say."""
    nested = config.get("text_config")
    for part in (config, nested if isinstance(nested, dict) else {}):
        for key in _POSITIONS:
            if isinstance(part.get(key), int) and part[key] > 0:
                return int(part[key])
    return None


def licence(folder: Path) -> str:
    """Return the licence that the model card in a folder states."""
    try:
        card = (folder / "README.md").read_text(encoding="utf-8", errors="replace")[:20_000]
    except OSError:
        return "licence not stated"
    head = re.match(r"---\s*\n(.*?)\n---", card, re.DOTALL)
    stated = re.search(r"^license:\s*([\w.+-]+)\s*$", head[1], re.MULTILINE) if head else None
    return f"licence {stated[1]}" if stated else "licence not stated"


def _any(folder: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted(path for pattern in patterns for path in folder.glob(pattern) if path.is_file())


def _shards(folder: Path) -> set[str]:
    """Names of the weight files that the indexes list; of the first kind that there is, as vLLM prefers it."""
    for name in ("model.safetensors.index.json", "pytorch_model.bin.index.json"):
        try:
            listed = read_json(folder / name)["weight_map"].values()
            return {Path(str(shard)).name for shard in listed}
        except FileNotFoundError:
            continue
        except (OSError, ValueError, KeyError, AttributeError, TypeError):
            return {f"a readable {name}"}
    return set()


def _broken(path: Path) -> str | None:
    """Say why a safetensors file cannot be whole, from its header and its size alone."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            start = file.read(8)
            length = int.from_bytes(start, "little")
            if start == b"version ":
                return "it is a Git LFS pointer, run `git lfs pull`"
            if len(start) < 8 or length > min(size - 8, 100_000_000):
                return "cut short"
            tensors = parse_json(file.read(length))
        ends = [int(entry["data_offsets"][1]) for name, entry in tensors.items() if name != "__metadata__"]
    except OSError as error:
        return f"it cannot be read: {error.strerror}"
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError):
        return "its header cannot be read"
    expected = 8 + length + max(ends, default=0)
    return None if size == expected else f"{size:,} bytes instead of {expected:,}"
