"""A stub of NVIDIA's library, compiled once a session, and child processes that drive the real pynvml against it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

PRELUDE = """
import json, os, sys, threading, time

def script(values):
    path = os.environ["NVML_STUB"]
    with open(path + ".new", "w") as file:
        file.writelines(f"{key} {value}\\n" for key, value in values.items())
    os.replace(path + ".new", path)  # at once, since the stub reads it at every call

def until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.005)

class Rows(list):
    def rows(self, table, rows):
        assert table == "memory"
        self.extend(rows)

class Clock:
    now = 0.0
    def __call__(self):
        return self.now

values = json.loads(os.environ["NVML_VALUES"])
script(values)
result = {}
"""

TWO_GPUS = {
    "count": 2,
    "driver": "580.65.06",
    "nvml": "13.580.65.06",
    "gpu0.uuid": "GPU-aaaa1111-0000",
    "gpu0.name": "NVIDIA H100 80GB HBM3",
    "gpu0.total": 85520809984,
    "gpu0.reserved": 500000000,
    "gpu0.used": 1000000,
    "gpu0.free": 85019809984,
    "gpu0.mig_mode": 0,
    "gpu1.uuid": "GPU-bbbb2222-0000",
    "gpu1.name": "NVIDIA H100 80GB HBM3",
    "gpu1.total": 85520809984,
    "gpu1.reserved": 500000000,
    "gpu1.used": 7000000,
    "gpu1.free": 85013809984,
    "gpu1.mig_mode": 0,
}


class Stub:
    """The stub library and how to run Python against it."""

    def __init__(self, library: Path, folder: Path) -> None:
        self.library, self.folder = library, folder
        self.two_gpus = dict(TWO_GPUS)

    def run(self, code: str, values: dict, library: Path | None = None) -> dict:
        """Run code in a process of its own; it fills ``result``, which is returned."""
        environ = {k: v for k, v in os.environ.items() if not k.startswith(("CUDA_", "NVML_", "LD_"))}
        environ |= {
            "LD_LIBRARY_PATH": str(library or self.library),
            "NVML_STUB": str(self.folder / "script.txt"),
            "NVML_STUB_LOG": str(self.folder / "log.txt"),
            "NVML_VALUES": json.dumps(values),
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "error:::workbench",
        }
        done = subprocess.run(
            [sys.executable, "-c", f"{PRELUDE}\n{code}\nprint(json.dumps(result))"],
            env=environ,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    @property
    def log(self) -> list[str]:
        """What the stub noted: ``init``, ``shutdown`` and each misuse."""
        path = self.folder / "log.txt"
        return [line.strip() for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="session")
def nvml_library(tmp_path_factory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler (cc, gcc or clang) to build the stub of libnvidia-ml.so.1")
    folder = tmp_path_factory.mktemp("nvml")
    subprocess.run(
        [
            compiler,
            "-shared",
            "-fPIC",
            "-O1",
            "-Wall",
            "-o",
            folder / "libnvidia-ml.so.1",
            HERE / "stub" / "nvml_stub.c",
        ],
        check=True,
    )
    return folder


@pytest.fixture
def stub(nvml_library, tmp_path) -> Stub:
    return Stub(nvml_library, tmp_path)
