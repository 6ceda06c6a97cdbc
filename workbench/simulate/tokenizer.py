"""A tokenizer for models that are not here: one token a byte, so that any text has one and no file is fetched.

Lengths in tokens are the workload's own, so a simulation needs from its tokens only that equal text is equal tokens.
"""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers


def write_tokenizer(folder: Path) -> Path:
    """Write ``tokenizer.json`` into a folder; return its path."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))
    return path
