"""The hub, played by a small server on this machine, and the network that is not there."""

from __future__ import annotations

import hashlib
import json
import os
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import workbench

pytest.importorskip("huggingface_hub")

SCRIPT = """
import sys
from workbench.errors import ModelError
from workbench.models import resolve_model
try:
    model = resolve_model(sys.argv[1], progress=lambda line: print("said", line), offline=None)
except ModelError as error:
    print("error", error)
    sys.exit(2)
print("path", model.path)
print("origin", model.origin)
"""
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def _resolve(home: Path, name: str = "org/name", **environment: str) -> tuple[int, str]:
    kept = {key: value for key, value in os.environ.items() if "proxy" not in key.lower() and not key.startswith("HF_")}
    root = str(Path(workbench.__file__).resolve().parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, name],
        env=kept | {"HF_HOME": str(home), "PYTHONPATH": root, "HF_HUB_DISABLE_XET": "1"} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert not done.stderr, done.stderr
    return done.returncode, done.stdout


@pytest.fixture
def fake_hub(model_folder):
    """Serve ``model_folder`` as org/name; yields its address and the paths that were asked for."""
    (model_folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n")
    (model_folder / "pytorch_model.bin").write_bytes(b"not wanted")
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_args):
            pass

        def _reply(self, body: bytes, status: int = 200, **headers: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-Repo-Commit", COMMIT)
            for key, value in headers.items():
                self.send_header(key.replace("_", "-"), value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        def do_GET(self):
            asked.append(self.path)
            path = self.path.split("?")[0]
            files = sorted(model_folder.iterdir())
            if "/gated/" in path or path.endswith("/gated"):
                self._reply(b"{}", 403, X_Error_Code="GatedRepo")
            elif not path.startswith(("/api/models/org/name", "/org/name/")):
                self._reply(b"{}", 404, X_Error_Code="RepoNotFound")
            elif "/tree/" in path:
                listed = [{"type": "file", "path": f.name, "size": f.stat().st_size, "oid": _oid(f)} for f in files]
                self._reply(json.dumps(listed).encode(), Content_Type="application/json")
            elif path.startswith("/api/"):
                listed = [{"rfilename": f.name, "size": f.stat().st_size, "blobId": _oid(f)} for f in files]
                info = {"id": "org/name", "modelId": "org/name", "sha": COMMIT, "siblings": listed, "tags": []}
                self._reply(json.dumps(info).encode(), Content_Type="application/json")
            else:
                file = model_folder / path.rsplit("/", 1)[1]
                self._reply(file.read_bytes(), ETag=f'"{_oid(file)}"')

        do_HEAD = do_GET  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()
    thread.join()


def _oid(file: Path) -> str:
    return hashlib.sha1(file.read_bytes()).hexdigest()


def test_downloaded_once_then_used_without_a_network(fake_hub, tmp_path):
    address, asked = fake_hub
    code, out = _resolve(tmp_path, HF_ENDPOINT=address)
    assert code == 0, out
    assert "said org/name: downloading 4 files" in out
    assert f"origin Hugging Face hub org/name, commit {COMMIT[:12]}; licence apache-2.0" in out
    assert not [path for path in asked if "pytorch_model" in path]
    asked.clear()
    for extra in ({"HF_ENDPOINT": address}, {"HF_HUB_OFFLINE": "1"}):
        code, again = _resolve(tmp_path, **extra)
        assert code == 0, again
        assert "said" not in again
    assert not asked


def test_a_download_that_was_cut_is_completed(fake_hub, tmp_path):
    address, _ = fake_hub
    _, out = _resolve(tmp_path, HF_ENDPOINT=address)
    folder = Path(out.split("path ")[1].splitlines()[0])
    (folder / "model.safetensors").resolve().unlink()
    (folder / "model.safetensors").unlink()
    code, out = _resolve(tmp_path, HF_HUB_OFFLINE="1")
    assert code == 2
    assert "missing: weights" in out
    code, out = _resolve(tmp_path, HF_ENDPOINT=address)
    assert code == 0, out
    assert (folder / "model.safetensors").is_file()


@pytest.mark.parametrize(
    ("name", "said"), [("org/other", "a model that the hub has"), ("org/gated", "accept its terms on the hub")]
)
def test_unknown_and_gated_models(fake_hub, tmp_path, name, said):
    code, out = _resolve(tmp_path, name, HF_ENDPOINT=fake_hub[0])
    assert code == 2
    assert said in out


def test_a_repository_without_a_whole_model(fake_hub, tmp_path, model_folder):
    (model_folder / "config.json").unlink()
    code, out = _resolve(tmp_path, HF_ENDPOINT=fake_hub[0])
    assert code == 2
    assert "missing: config.json" in out


@pytest.mark.parametrize("switch", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_offline_by_choice(tmp_path, switch):
    code, out = _resolve(tmp_path, **{switch: "1"})
    assert code == 2
    assert "error model: got 'org/name'" in out
    assert "smollm2, tiny-long" in out
    assert "said" not in out


def test_an_unreachable_proxy(tmp_path):
    with socket.socket() as taken:  # bound, not listening: a connection is refused at once
        taken.bind(("127.0.0.1", 0))
        proxy = f"http://user:secret@127.0.0.1:{taken.getsockname()[1]}"
        code, out = _resolve(tmp_path, HTTPS_PROXY=proxy, HTTP_PROXY=proxy)
    assert code == 2
    error = out.splitlines()[-1]
    assert "a hub within reach" in error
    assert "check network and proxy" in error
    assert "secret" not in out
