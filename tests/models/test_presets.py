"""The real presets, as they come out of the installed package."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from workbench.models import list_presets, presets, resolve_model


def test_presets_are_listed_with_what_a_person_needs():
    listed = list_presets()
    assert [preset.name for preset in listed] == ["smollm2", "tiny-long"]
    for preset in listed:
        assert preset.summary
        assert "Apache-2.0" in preset.origin
    assert "made up" in presets.TINY_LONG.origin


def test_smollm2_is_what_vllm_needs(smollm2):
    folder = Path(smollm2.path)
    assert smollm2.load_format == "auto"
    assert smollm2.max_positions == smollm2.config["max_position_embeddings"] == presets.SMOLLM2.max_positions
    assert smollm2.config["tie_word_embeddings"]
    assert smollm2.config["rope_parameters"]["rope_theta"] == 100000.0
    generation = json.loads((folder / "generation_config.json").read_text())
    assert (generation["bos_token_id"], generation["eos_token_id"]) == (1, 2)
    weights = (folder / "model.safetensors").read_bytes()
    values = weights[8 + int.from_bytes(weights[:8], "little") :]
    # the same bits as transformers' GgufConfig(dequantize=True) with accelerate 1.15 writes from the same file
    assert hashlib.sha256(values).hexdigest() == "5d9bacfb6e704b2142088ab0e2548bc0de0a6b3a3179fcde6595ff2a6b30c1ec"


@pytest.mark.parametrize(
    "text",
    ["Hello  world 12345", "def f(x):\n    return x + 1000\n", "naïve café 日本語 🙂 don't", "a   1\n\n  3", ""],
)
def test_smollm2_tokenizer_round_trip(smollm2, text):
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(smollm2.tokenizer_path))
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_smollm2_tokenizer_knows_digits_and_special_tokens(smollm2):
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_file(str(smollm2.tokenizer_path))
    assert tokenizer.get_vocab_size() == smollm2.config["vocab_size"] == 49152
    assert tokenizer.encode("a   1").tokens == ["a", "ĠĠĠ", "1"]  # the rule that transformers drops
    assert tokenizer.encode("<|im_start|>user\nhi<|im_end|>").ids[0] == 1
    assert tokenizer.encode("hi<|im_end|>").ids[-1] == 2
    settings = json.loads(smollm2.tokenizer_path.with_name("tokenizer_config.json").read_text())
    assert settings["eos_token"] == "<|im_end|>"
    assert settings["model_max_length"] == 8192


def test_smollm2_chat_template(smollm2):
    jinja2 = pytest.importorskip("jinja2")
    template = jinja2.Template((Path(smollm2.path) / "chat_template.jinja").read_text())
    text = template.render(messages=[{"role": "user", "content": "hi"}], add_generation_prompt=True)
    assert text.startswith("<|im_start|>system\n")
    assert text.endswith("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n")


def test_tiny_long(smollm2, tmp_path, monkeypatch):
    monkeypatch.setenv("WORKBENCH_CACHE", str(tmp_path))
    (tmp_path / "models").mkdir()
    (tmp_path / "models/smollm2").symlink_to(smollm2.path)  # so that nothing is converted
    said: list[str] = []
    model = resolve_model("tiny-long", progress=said.append)
    assert model.load_format == "dummy"
    assert model.max_positions == 131072 == presets.TINY_LONG.max_positions
    shape = [model.config[key] for key in ("num_hidden_layers", "hidden_size", "num_key_value_heads")]
    assert shape == [4, 256, 1]
    assert model.config["num_attention_heads"] * model.config["head_dim"] == model.config["hidden_size"]
    assert model.tokenizer_path.read_bytes() == smollm2.tokenizer_path.read_bytes()
    assert "taking configuration and tokenizer from smollm2" in said[0]
    assert presets.TINY_LONG.ready
