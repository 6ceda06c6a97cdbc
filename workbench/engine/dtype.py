"""The data type that ``auto`` stands for on this machine."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from workbench.config import EngineConfig

# As /proc/cpuinfo names them. Without one of these torch emulates bfloat16: measured on an AVX2-only EPYC, a matmul of
# one thread reaches 83 GFLOP/s in float32 and 10 in bfloat16, and the engine takes 170 s to start instead of 76.
_BF16 = {"avx512bw", "avx512_bf16", "amx_bf16", "bf16"}


def fitted(config: EngineConfig, device: Literal["cpu", "cuda"]) -> EngineConfig:
    """The configuration with ``auto`` made float32 where the processor only emulates bfloat16; else as it is."""
    if config.dtype != "auto" or device != "cpu" or computes_bf16():
        return config
    return config.replace(dtype="float32")


@cache
def computes_bf16(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this processor has instructions for bfloat16; true where that cannot be read."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return True
    flags = {flag for line in lines if line.startswith(("flags", "Features")) for flag in line.split(":", 1)[1].split()}
    return not flags or bool(flags & _BF16)
