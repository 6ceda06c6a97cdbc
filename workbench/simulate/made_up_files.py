"""What stands for the files of a model that is not here: its name, and a tokenizer of one token a byte.

So any text has tokens and no file is fetched. Lengths in tokens are the workload's own, so a simulation needs from its
tokens only that equal text is equal tokens.
"""

from __future__ import annotations

from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from workbench.models import ModelFiles
from workbench.models.architecture import hub_id
from workbench.simulated_config import SimulatedConfig


def made_up_files(config: SimulatedConfig, folder: Path) -> ModelFiles:
    """The files of a simulated engine's model.

    Args:
        config: of the engine.
        folder: for the tokenizer; it must live as long as the engine.
    """
    return ModelFiles(
        name=config.model,
        path=hub_id(config.model) or config.model,
        tokenizer_path=write_tokenizer(folder),
        load_format="auto",
        max_positions=config.max_model_len,
        origin="sizes only: nothing is computed, and tokens are made up",
        config={},
    )


def write_tokenizer(folder: Path) -> Path:
    """Write ``tokenizer.json`` into a folder; return its path."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE(vocab={letter: i for i, letter in enumerate(alphabet)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    path = folder / "tokenizer.json"
    tokenizer.save(str(path))
    return path
