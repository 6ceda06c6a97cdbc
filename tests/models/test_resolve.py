"""Names, folders and hub ids, good and bad."""

from __future__ import annotations

import json
import os

import pytest

from workbench.errors import ModelError
from workbench.models import fetch, hub, resolve_model
from workbench.models.folder import max_positions, missing


def test_a_local_folder(model_folder):
    (model_folder / "README.md").write_text("---\nlicense: mit\ntags: [x]\n---\n# A model\n")
    model = resolve_model(str(model_folder))
    assert model.path == str(model_folder)
    assert model.tokenizer_path == model_folder / "tokenizer.json"
    assert (model.load_format, model.max_positions) == ("auto", 2048)
    assert "licence mit" in model.origin


def test_tilde_and_a_relative_path(model_folder, monkeypatch):
    monkeypatch.setenv("HOME", str(model_folder.parent))
    assert resolve_model("~/name").path == str(model_folder)
    monkeypatch.chdir(model_folder.parent.parent)
    assert resolve_model("org/name").path == str(model_folder)  # a folder that is there comes before the hub
    assert resolve_model(" ./org/name/ ").path == str(model_folder)


def test_a_tokenizer_of_another_kind(model_folder):
    (model_folder / "tokenizer.json").rename(model_folder / "tokenizer.model")
    assert resolve_model(str(model_folder)).tokenizer_path is None


@pytest.mark.parametrize(
    ("lost", "named"),
    [("config.json", "config.json"), ("tokenizer.json", "tokenizer"), ("model.safetensors", "weights")],
)
def test_what_a_folder_lacks_is_named(model_folder, lost, named):
    (model_folder / lost).unlink()
    with pytest.raises(ModelError, match=f"it lacks .*{named}") as caught:
        resolve_model(str(model_folder))
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("contents", "said"),
    [
        (b"", "cut short"),
        (b"version https://lfs.example/spec/v1\noid sha256:0\nsize 9\n", "Git LFS pointer"),
        (b"\x05\0\0\0\0\0\0\0nope!", "header cannot be read"),
        (b"\xff\xff\xff\xff\xff\xff\xff\x7fxx", "cut short"),
    ],
)
def test_weights_that_are_not_whole(model_folder, contents, said):
    (model_folder / "model.safetensors").write_bytes(contents)
    with pytest.raises(ModelError, match=said):
        resolve_model(str(model_folder))


def test_truncated_weights_and_lost_shards(model_folder):
    weights = model_folder / "model.safetensors"
    os.truncate(weights, weights.stat().st_size - 1)
    assert "bytes instead of" in missing(model_folder)[0]
    weights.unlink()
    (model_folder / "model-1.safetensors").write_bytes(b"")
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (model_folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert "model-2.safetensors" in missing(model_folder)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"architectures": []}'])
def test_a_config_of_nonsense(model_folder, text):
    (model_folder / "config.json").write_text(text)
    with pytest.raises(ModelError, match=r"config\.json"):
        resolve_model(str(model_folder))


def test_positions_are_found_where_families_keep_them():
    assert max_positions({"n_positions": 1024}) == 1024
    assert max_positions({"text_config": {"max_position_embeddings": 4096}}) == 4096
    assert max_positions({"text_config": None}) is None


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "the default is smollm2"),
        ("  ", "the default is smollm2"),
        ("a\0b", "the default is smollm2"),
        ("smollm", "did you mean smollm2"),
        ("SmolLM2", "did you mean smollm2"),
        ("tiny_long", "did you mean tiny-long"),
        ("quite-another", "a preset"),
        ("/no/such/folder", "check the path"),
        ("./nope", "check the path"),
        ("~/nope-nope", "check the path"),
        ("a/b/c", "org/name"),
        ("https://hub.example/a/b", "org/name"),
        ("x" * 5000, "path"),
        ("/no/such.gguf", "check the path"),
    ],
)
def test_bad_names_get_one_line_with_a_way_out(name, said):
    with pytest.raises(ModelError, match=said) as caught:
        resolve_model(name)
    assert "\n" not in str(caught.value)


def test_files_instead_of_folders(model_folder, tmp_path):
    with pytest.raises(ModelError, match=f"give the folder that holds it: {model_folder}"):
        resolve_model(str(model_folder / "config.json"))
    gguf = tmp_path / "m.gguf"
    gguf.write_bytes(b"GGUF")
    for name in (gguf, tmp_path):
        with pytest.raises(ModelError, match=r"python -m workbench\.models\.convert"):
            resolve_model(str(name))


@pytest.mark.parametrize("name", ["a/b", "meta-llama/Llama-3.1-8B", "0x/x_y.z"])
def test_hub_ids(name):
    assert hub.is_hub_id(name)


@pytest.mark.parametrize("name", ["a", "a/b/c", "/a/b", "a/../b", "a/b--c", "a/.b", "a/b.git", "a b/c", "é/b", "a/b\n"])
def test_not_hub_ids(name):
    assert not hub.is_hub_id(name)


def test_the_files_to_fetch_hold_one_copy_of_the_weights():
    both = ["config.json", "tokenizer.json", "model.safetensors", "pytorch_model.bin", "onnx/m.onnx", "original/c.pth"]
    assert fetch.choose(dict.fromkeys(both, 1)) == ["config.json", "model.safetensors", "tokenizer.json"]
    assert "pytorch_model.bin" in fetch.choose({"config.json": 1, "pytorch_model.bin": 1, "training_args.bin": 1})
    assert fetch.choose({"config.json": 1, "consolidated.safetensors": 1, "a.safetensors": 1})[0] == "a.safetensors"
    with pytest.raises(fetch.FetchError, match=r"config\.json and weights"):
        fetch.choose({"model.gguf": 1})


def test_a_failure_is_told_by_its_kind_and_never_by_its_text():
    error = RuntimeError("http://user:secret@proxy")
    error.__cause__ = ConnectionError("http://user:secret@proxy")
    assert fetch.kind_of(error) == "unreachable RuntimeError"
    assert fetch.kind_of(OSError(28, "No space left on device")).startswith("space")
    assert fetch.kind_of(ValueError("secret")) == "ValueError"
