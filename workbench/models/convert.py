"""Turn a GGUF file of the llama family into a folder that vLLM loads.

``python -m workbench.models.convert SOURCE.gguf FOLDER [--without-weights] [--guarded]``

A process of its own, since torch and transformers cost the notebook kernel 600 MB. Configuration, tokenizer and the
file layout are written by transformers; the weights are unpacked by ``gguf``. transformers would unpack them too
(``GgufConfig(dequantize=True)``), but refuses to without ``accelerate``, which nothing else here needs; the two give
the same bits. Progress goes to standard output, a line at a time; what went wrong is the last line of standard error.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

VERSION = 1  # raise it whenever the output changes: folders of an older version are made anew

_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


def convert(source: Path, folder: Path, *, weights: bool = True) -> None:
    """Write configuration, tokenizer and, unless told otherwise, bf16 weights of ``source`` to ``folder``.

    Raises:
        ValueError: the file is of another family, or holds tensors that this converter does not know.
    """
    folder.mkdir(parents=True, exist_ok=True)
    say("loading transformers")
    import transformers

    transformers.logging.set_verbosity_error()
    named = {"pretrained_model_name_or_path": str(source.parent), "gguf_file": source.name, "local_files_only": True}
    config = transformers.AutoConfig.from_pretrained(**named)
    if config.model_type != "llama":
        raise ValueError(f"{source.name} holds a {config.model_type} model, only llama is converted")
    import gguf

    say("reading the file")
    reader = gguf.GGUFReader(source)
    say("tokenizer")
    tokenizer = transformers.AutoTokenizer.from_pretrained(**named)
    split = reader.get_field("tokenizer.ggml.pre")
    _mend_tokenizer(tokenizer, None if split is None else split.contents())
    tokenizer.model_max_length = config.max_position_embeddings
    tokenizer.save_pretrained(folder)
    config.architectures = ["LlamaForCausalLM"]
    config.dtype = "bfloat16"
    if weights:
        _write_weights(reader, config, folder)
    else:
        config.save_pretrained(folder)
        transformers.GenerationConfig.from_model_config(config).save_pretrained(folder)
    say("written")


def _write_weights(reader: Any, config: Any, folder: Path) -> None:
    import torch
    import transformers

    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config)
    state = {}
    for name, tensor, done, count in _tensors(reader, config):
        state[name] = tensor
        if done % 30 == 0 or done == count:
            say(f"weights {done} of {count}")
    if config.tie_word_embeddings:
        state.setdefault("lm_head.weight", state["model.embed_tokens.weight"])
    model.load_state_dict(state, strict=True, assign=True)  # a missing or unknown tensor is an error
    model.tie_weights()
    say("writing 1 file")
    model.save_pretrained(folder)


def _tensors(reader: Any, config: Any) -> Iterator[tuple[str, Any, int, int]]:
    import gguf
    import numpy as np
    import torch

    heads = {"attn_q": config.num_attention_heads, "attn_k": config.num_key_value_heads}
    count = len(reader.tensors)
    for done, tensor in enumerate(reader.tensors, 1):
        stem, _, kind = tensor.name.rpartition(".")
        weight = np.array(gguf.quants.dequantize(tensor.data, tensor.tensor_type))
        layer, part = stem.removeprefix("blk.").split(".") if stem.startswith("blk.") else ("", stem)
        if kind != "weight" or part not in (_LAYER if layer else _TOP):
            raise ValueError(f"tensor {tensor.name} is not part of a plain llama model")
        if layer and part in heads:
            # llama.cpp interleaves the two halves that a rotary embedding turns; transformers keeps them apart
            pairs = weight.reshape(heads[part], -1, 2, weight.shape[1])
            weight = pairs.swapaxes(1, 2).reshape(weight.shape)
        name = f"model.layers.{layer}.{_LAYER[part]}.weight" if layer else f"{_TOP[part]}.weight"
        yield name, torch.from_numpy(np.ascontiguousarray(weight)).to(torch.bfloat16), done, count


def _mend_tokenizer(tokenizer: Any, split: str | None) -> None:
    """Give a SmolLM tokenizer its digit rule back, which transformers drops when it reads a GGUF file."""
    if split == "smollm":
        from tokenizers import pre_tokenizers

        tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Digits(individual_digits=True),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
            ]
        )


def say(text: str) -> None:
    """Print one line of progress at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def end_with_parent() -> None:
    """End this process when standard input closes: the process that asked for this is gone, however it went."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        os._exit(3)

    threading.Thread(target=watch, daemon=True).start()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m workbench.models.convert", description=__doc__)
    parser.add_argument("source", type=Path, help="a GGUF file")
    parser.add_argument("folder", type=Path, help="where to write")
    parser.add_argument("--without-weights", action="store_true", help="configuration and tokenizer only")
    parser.add_argument("--guarded", action="store_true", help="end when standard input closes")
    args = parser.parse_args(argv)
    if args.guarded:
        end_with_parent()
    try:
        convert(args.source.resolve(), args.folder, weights=not args.without_weights)
    except Exception as error:  # noqa: BLE001 - the parent shows this one line
        text = " ".join(str(error).split())
        sys.stderr.write(f"{type(error).__name__}: {text}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
