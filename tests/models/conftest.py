"""A made-up llama of 2 layers as GGUF, small enough to convert in a test, and the real preset."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import workbench
from workbench.models import presets

ROOT = Path(workbench.__file__).resolve().parent.parent

DRIVER = """
import sys
from workbench.errors import WorkbenchError
from workbench.models import presets
presets.PACKAGE = "made_up_models"
name, sha256, long = sys.argv[1:4]
changes = {"num_hidden_layers": 1, "max_position_embeddings": 4096} if long == "long" else {}
preset = presets.Preset(name=name, summary="", origin="made up", max_positions=64, load_format="auto", disk_mib=1,
                        source_sha256=sha256, changes=changes)
try:
    print("folder", presets.prepare(preset, lambda line: print(line, flush=True), verify="verify" in sys.argv[4:]))
except WorkbenchError as error:
    print("error", error)
    sys.exit(error.exit_code)
print("imported", sorted({"torch", "transformers", "numpy", "gguf"} & set(sys.modules)))
"""


def _bytes_alphabet() -> list[str]:
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    rest = [byte for byte in range(256) if byte not in kept]
    return [chr(byte) for byte in kept] + [chr(256 + index) for index in range(len(rest))]


@pytest.fixture(scope="session")
def gguf_package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for PYTHONPATH with a package that holds a GGUF file."""
    gguf = pytest.importorskip("gguf")
    np = pytest.importorskip("numpy")
    home = tmp_path_factory.mktemp("packages")
    package = home / "made_up_models"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('found, never imported')\n")
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *_bytes_alphabet(), "ĠĠ"]
    hidden, heads, kv, inner, size = 64, 4, 2, 96, len(tokens)
    writer = gguf.GGUFWriter(str(package / "tiny.gguf"), "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(hidden)
    writer.add_block_count(2)
    writer.add_feed_forward_length(inner)
    writer.add_head_count(heads)
    writer.add_head_count_kv(kv)
    writer.add_rope_dimension_count(hidden // heads)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(size)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3, 3, 3] + [1] * (size - 3))
    writer.add_token_merges(["Ġ Ġ"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_pad_token_id(2)
    writer.add_chat_template("{% for m in messages %}<|im_start|>{{ m['content'] }}<|im_end|>{% endfor %}")
    random = np.random.default_rng(0)
    shapes = {"token_embd": (size, hidden), "output_norm": (hidden,)}
    for layer in range(2):
        parts = {
            "attn_norm": (hidden,),
            "ffn_norm": (hidden,),
            "attn_q": (hidden, hidden),
            "attn_output": (hidden, hidden),
        }
        parts |= {"attn_k": (hidden // heads * kv, hidden), "attn_v": (hidden // heads * kv, hidden)}
        parts |= {"ffn_gate": (inner, hidden), "ffn_up": (inner, hidden), "ffn_down": (hidden, inner)}
        shapes |= {f"blk.{layer}.{part}": shape for part, shape in parts.items()}
    for name, shape in shapes.items():
        data = random.standard_normal(shape).astype(np.float32)
        if len(shape) == 2 and name.endswith(("ffn_gate", "token_embd")):
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(f"{name}.weight", gguf.quants.quantize(data, kind), raw_dtype=kind)
        else:
            writer.add_tensor(f"{name}.weight", data)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return home


@pytest.fixture
def cache_folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def start(gguf_package: Path, cache_folder: Path):
    """Start a process that prepares the made-up preset."""
    started: list[subprocess.Popen[str]] = []

    def begin(*words: str, **options) -> subprocess.Popen[str]:
        started.append(_driver(gguf_package, cache_folder, *words, **options))
        return started[-1]

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


def _driver(packages: Path, cache: Path, *words: str, long="short", sha256=None, first=None) -> subprocess.Popen[str]:
    digest = sha256 or hashlib.sha256((packages / "made_up_models/tiny.gguf").read_bytes()).hexdigest()
    path = os.pathsep.join(str(part) for part in (first, ROOT, packages) if part)
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, "made-up", digest, long, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path, "WORKBENCH_CACHE": str(cache)},
    )


@pytest.fixture(scope="session")
def converted(gguf_package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that holds the made-up preset; copy it, do not change it."""
    cache = tmp_path_factory.mktemp("converted") / "cache"
    process = _driver(gguf_package, cache)
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, out + err
    assert "weights 20 of 20" in out
    return cache


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory: pytest.TempPathFactory):
    """The real preset: from the user's cache where it is there, else converted once for this session."""
    from workbench.models import resolve_model

    if presets.SMOLLM2.ready:
        yield resolve_model("smollm2")
        return
    with pytest.MonkeyPatch.context() as patch:
        shared = tmp_path_factory.getbasetemp()
        shared = shared.parent if os.environ.get("PYTEST_XDIST_WORKER") else shared
        patch.setenv("WORKBENCH_CACHE", str(shared / "models-cache"))
        yield resolve_model("smollm2")


@pytest.fixture
def model_folder(tmp_path: Path) -> Path:
    """A folder with everything that a model needs, as far as can be told without loading it."""
    folder = tmp_path / "org" / "name"
    folder.mkdir(parents=True)
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "max_position_embeddings": 2048}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(safetensors_bytes())
    return folder


def safetensors_bytes() -> bytes:
    header = json.dumps({"w": {"dtype": "BF16", "shape": [4], "data_offsets": [0, 8]}}).encode()
    return len(header).to_bytes(8, "little") + header + bytes(8)
