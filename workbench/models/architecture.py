"""From a model's ``config.json`` to its :class:`Architecture`, for the families whose counting is known to be right."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from workbench.architecture import Architecture
from workbench.errors import ModelError
from workbench.i18n import phrase

__all__ = ["FAMILIES", "Architecture", "from_config", "hub_id", "known_models", "named"]

# Decoder-only, gated MLP, standard or latent attention. Others (state spaces, linear attention, plain MLPs, encoders)
# would be counted wrong, and a wrong MFU is worse than none.
FAMILIES = (
    *("llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "deepseek_v2", "deepseek_v3"),
    *("gemma", "gemma2", "gemma3_text", "phi3", "granite", "smollm3", "seed_oss", "gpt_oss"),
)
_MOST_LAYERS = 10_000  # each is looked at
_TIED_UNLESS_SAID = ("gemma", "gemma2", "gemma3_text")  # transformers' defaults, which a config.json may leave out


def from_config(config: Mapping[str, Any], name: str = "") -> Architecture:
    """Read the sizes of a model.

    Args:
        config: what its ``config.json`` holds.
        name: what people call it; by default what the configuration says.

    Raises:
        ModelError: a family that is not known, or a size that is missing.
    """
    family = str(config.get("model_type") or "")
    what = f"FLOP count of {name or config.get('_name_or_path') or family or 'a model'}"
    if family not in FAMILIES:
        known = f"one of the model types {', '.join(FAMILIES)}"
        raise ModelError(what, family or "no model_type", known, "MFU and estimates do without it")
    try:
        sizes = _sizes(config, family)
        return Architecture(name=name or str(config.get("_name_or_path") or family), **sizes)
    except KeyError as error:
        raise ModelError(what, f"no {error.args[0]}", "a complete config.json", "fetch the file again") from None
    except (TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
        raise ModelError(what, str(error), "whole numbers in config.json", "fetch the file again") from None


def known_models() -> tuple[str, ...]:
    """Names of the models whose facts come with the workbench (``data/models``)."""
    return tuple(sorted(path.stem for path in _folder().glob("*.json")))


def named(name: str) -> Architecture:
    """One of :func:`known_models`.

    Raises:
        ModelError: there is none of that name.
    """
    wanted, names = name.strip().lower(), known_models()
    if wanted not in names:
        near = difflib.get_close_matches(wanted, names, n=1)
        fix = phrase("did you mean {name}?", name=near[0]) if near else phrase("give a model folder instead")
        raise ModelError("model", name, phrase("one of {names}", names=", ".join(names)), fix)
    facts = json.loads((_folder() / f"{wanted}.json").read_bytes())
    return from_config(facts["config"], facts["name"])


def hub_id(name: str) -> str | None:
    """What ``vllm serve`` calls one of :func:`known_models`; none for any other name."""
    path = _folder() / f"{name.strip().lower()}.json"
    return str(json.loads(path.read_bytes())["hub"]) if path.stem in known_models() else None


def _folder() -> Path:
    return Path(__file__).resolve().parents[2] / "data" / "models"


def _sizes(config: Mapping[str, Any], family: str) -> dict[str, Any]:
    layers, hidden, heads = (int(config[key]) for key in ("num_hidden_layers", "hidden_size", "num_attention_heads"))
    if not (0 < layers <= _MOST_LAYERS and hidden > 0 and heads > 0):
        raise ValueError(f"{layers} layers of {hidden} with {heads} heads")
    head_dim = int(config.get("head_dim") or hidden // heads)
    sizes: dict[str, Any] = {
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "kv_heads": int(config.get("num_key_value_heads") or heads),
        "head_dim": head_dim,
        "value_dim": head_dim,
        "intermediate": int(config["intermediate_size"]),
        "vocab": int(config["vocab_size"]),
        "tied": bool(config.get("tie_word_embeddings", family in _TIED_UNLESS_SAID)),
        "qkv_bias": family in ("qwen2", "qwen2_moe", "seed_oss") or bool(config.get("attention_bias")),
    }
    return sizes | _window(config, family, layers) | _experts(config, family, layers) | _latent(config)


def _window(config: Mapping[str, Any], family: str, layers: int) -> dict[str, int]:
    """The sliding window and how many layers have it: by ``layer_types``, else by the family's own rule."""
    window = int(config.get("sliding_window") or 0)
    if not window or config.get("use_sliding_window") is False:
        return {}
    kinds = config.get("layer_types")
    if kinds:
        count = sum(kind == "sliding_attention" for kind in kinds)
    elif family.startswith("qwen"):
        if not config.get("use_sliding_window"):
            return {}
        count = max(layers - int(config.get("max_window_layers") or layers), 0)
    elif family in ("gemma2", "gpt_oss"):  # every other layer, the first one windowed
        count = (layers + 1) // 2
    elif family == "gemma3_text":  # all but every sixth
        count = layers - layers // int(config.get("sliding_window_pattern") or 6)
    else:
        count = layers
    return {"window": window, "windowed_layers": count}


def _experts(config: Mapping[str, Any], family: str, layers: int) -> dict[str, int]:
    experts = int(config.get("n_routed_experts") or config.get("num_local_experts") or config.get("num_experts") or 0)
    if not experts:
        return {}
    width = int(config.get("moe_intermediate_size") or config["intermediate_size"])
    if family.startswith("deepseek"):
        dense = min(int(config.get("first_k_dense_replace") or 0), layers)
        moe = sum(layer % int(config.get("moe_layer_freq") or 1) == 0 for layer in range(dense, layers))
        shared = int(config.get("n_shared_experts") or 0) * width
    else:
        dense_ones, every = set(config.get("mlp_only_layers") or ()), int(config.get("decoder_sparse_step") or 1)
        moe = sum(layer not in dense_ones and (layer + 1) % every == 0 for layer in range(layers))
        shared = int(config.get("shared_expert_intermediate_size") or 0)
    return {
        "experts": experts,
        "experts_per_token": int(config.get("num_experts_per_tok") or config["experts_per_token"]),
        "expert_intermediate": width,
        "shared_intermediate": shared,
        "moe_layers": moe,
    }


def _latent(config: Mapping[str, Any]) -> dict[str, int]:
    """Multi-head latent attention: keys and values are cached as one compressed vector a token."""
    if not config.get("kv_lora_rank"):
        return {}
    rope = int(config["qk_rope_head_dim"])
    return {
        "q_rank": int(config.get("q_lora_rank") or 0),
        "kv_rank": int(config["kv_lora_rank"]),
        "rope_dim": rope,
        "head_dim": int(config["qk_nope_head_dim"]) + rope,
        "value_dim": int(config["v_head_dim"]),
    }
